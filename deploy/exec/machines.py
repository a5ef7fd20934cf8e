#!/usr/bin/env python3
"""A complete script for the provisioner `exec`: folders that stand for machines.

Run as `machines.py STATE VERB` with a question on standard input; the answer
goes to standard output. The contract is docs/provisioners/exec.md.

What stands under "yours" is to be replaced: it knows how a machine is started,
looked at and stopped. The rest is the bookkeeping that every such script needs
and that is easily got wrong: one machine for a token whatever is repeated, ids
that are never used twice, tokens that are remembered after the end. It needs
Python 3.9 and nothing else.
"""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import shutil
import sys
import uuid

# ---- yours ------------------------------------------------------------------

OFFERS = [
    {"type": "pretend-8", "region": "here", "model": "h100-80g", "gpus": 8, "memory_mib": 81920,
     "price_per_hour": "19.22", "min_billing_seconds": 60, "boot_p50_seconds": 1, "boot_p95_seconds": 5},
    {"type": "pretend-1", "region": "here", "model": "h100-80g", "gpus": 1, "memory_mib": 81920,
     "price_per_hour": "2.49", "boot_p50_seconds": 1, "boot_p95_seconds": 5},
]
MOST_AT_ONCE = 4


def start(state, record):
    """Start the machine, without waiting for it. It may be called again for a
    machine that was started already, and must then do nothing."""
    (state / "machines" / record["id"]).mkdir(parents=True, exist_ok=True)


def look(state, record):
    """Return "booting" or "running", or None when there is no such machine. Raise
    when that cannot be said: an exception is an error, never an absence."""
    return "running" if (state / "machines" / record["id"]).is_dir() else None


def describe(state, record):
    """Return address and devices of a machine that runs."""
    count = next(o["gpus"] for o in OFFERS if o["type"] == record["type"])
    devices = [{"uuid": f"GPU-PRETEND-{record['id']}-{i}", "index": i, "model": "h100-80g", "memory_mib": 81920}
               for i in range(count)]
    return f"{record['id']}.invalid", devices


def stop(state, record):
    """Start the machine's end, without waiting for it. It may be called again."""
    shutil.rmtree(state / "machines" / record["id"], ignore_errors=True)


# ---- bookkeeping ------------------------------------------------------------

REMEMBER = datetime.timedelta(hours=48)  # a token after its machine's end; 24 are asked for
TAGS = ("type", "region", "owner", "node_id")


class Refusal(Exception):
    """An error whose kind is known. Any other exception ends the script without a
    document, which the control plane takes for "a machine may exist"."""

    def __init__(self, kind, message, scope=""):
        super().__init__(message)
        self.document = {"error": {"kind": kind, "scope": scope, "message": message}}


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def write(state, record):
    """Replace the record, so that a crash leaves the old one or the new one."""
    path = state / "records" / (record["id"] + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with open(temporary, "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def records(state):
    """Return every record, without those that are old enough to be forgotten."""
    kept = []
    for path in sorted((state / "records").glob("*.json")):
        record = json.loads(path.read_text())
        ended = record.get("ended_at")
        if ended and now() - datetime.datetime.fromisoformat(ended) > REMEMBER:
            path.unlink()
        else:
            kept.append(record)
    return kept


def find(state, machine_id):
    """Return the record. The id comes from outside and would become a path."""
    path = state / "records" / (machine_id + ".json")
    if not re.fullmatch(r"m-[0-9a-f]{32}", machine_id) or not path.exists():
        raise Refusal("not_found", f"no machine {machine_id!r}")
    return json.loads(path.read_text())


def refresh(state, record):
    """Return the machine's phase, and write down its end when it is seen first."""
    if record.get("ended_at"):
        return "terminated"
    if not record.get("started"):  # we died before; the repeated create starts it
        return "terminating" if record.get("deleted") else "booting"
    phase = look(state, record)
    if phase is None:
        record["ended_at"] = now().isoformat()
        write(state, record)
        return "terminated"
    return "terminating" if record.get("deleted") else phase


def show(state, record):
    """Return the machine as the contract wants it."""
    instance = {"phase": refresh(state, record)}
    for key in ("id", "token", "owner", "node_id", "type", "created_at", "ended_at"):
        if record.get(key):
            instance[key] = record[key]
    if instance["phase"] == "running":
        instance["address"], instance["devices"] = describe(state, record)
    return instance


def create(state, question):
    spec, known = question["spec"], records(state)
    record = next((r for r in known if r["token"] == question["token"]), None)
    if record is None:
        record = book(state, question, known)
    if any(record[tag] != spec[tag] for tag in TAGS):
        raise Refusal("bad_spec", "the token was used for another machine")
    if not record.get("started") and not record.get("deleted"):
        start(state, record)
        record["started"] = True
        write(state, record)
    return {"instance": show(state, record)}


def book(state, question, known):
    """Write down that the machine is wanted before anything is started: whoever
    repeats the call after a crash finds the id that was chosen."""
    spec = question["spec"]
    if not any(o["type"] == spec["type"] and spec["region"] in ("", o["region"]) for o in OFFERS):
        raise Refusal("bad_spec", f"no type {spec['type']!r} in region {spec['region']!r}")
    if sum(1 for r in known if refresh(state, r) != "terminated") >= MOST_AT_ONCE:
        raise Refusal("capacity", f"all {MOST_AT_ONCE} machines are taken", spec["type"])
    record = {"id": "m-" + uuid.uuid4().hex, "token": question["token"], "created_at": now().isoformat()}
    record.update({tag: spec[tag] for tag in TAGS})
    write(state, record)
    return record


def get(state, question):
    return {"instance": show(state, find(state, question["id"]))}


def list_(state, question):
    owned = [r for r in records(state) if r["owner"] == question.get("owner")]
    return {"instances": [show(state, r) for r in owned], "complete": True}


def delete(state, question):
    record = find(state, question["id"])
    if not record.get("ended_at"):
        # Started or not: from here on, what look() does not find is gone.
        record["deleted"] = record["started"] = True
        write(state, record)
        stop(state, record)
        refresh(state, record)
    return {}


def offers(state, question):
    return {"offers": OFFERS}


VERBS = {"create": create, "get": get, "list": list_, "delete": delete, "offers": offers}


@contextlib.contextmanager
def locked(state):
    """Let one call at a time look and act. The lock goes with the process."""
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main():
    state, verb = pathlib.Path(sys.argv[1]), sys.argv[2]
    question = json.load(sys.stdin)
    if question["version"] != 1:
        sys.exit(f"version {question['version']} of the contract is not known here")
    try:
        with locked(state):
            answer = VERBS[verb](state, question)
    except Refusal as refusal:
        answer = refusal.document
    json.dump(answer, sys.stdout)


main()
