"""Machines of this one that run the node daemon, for the provisioner `exec`.

Run as `rack.py PROGRAM STATE VERB`, where PROGRAM is forewarm-node. The bookkeeping is that of the example that
operators begin with; a machine is a daemon with two simulated GPUs and folders of its own.
"""

import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "deploy" / "exec" / "machines.py"
PROGRAM, QUESTION = sys.argv.pop(1), json.load(sys.stdin)
sys.stdin = io.StringIO(json.dumps(QUESTION))
exec(EXAMPLE.read_text().removesuffix("main()\n"))

GPUS = 2
OFFERS = [{"type": "twin", "region": "here", "model": "h100-80g", "gpus": GPUS, "memory_mib": 81920,
           "price_per_hour": "1", "boot_p50_seconds": 1, "boot_p95_seconds": 5}]


def start(state, record):
    machine = state / "machines" / record["id"]
    if (machine / "pid").exists():
        return
    machine.mkdir(parents=True, exist_ok=True)
    daemon, token = QUESTION["spec"]["daemon"], machine / "token"
    token.touch(mode=0o600)
    token.write_text(daemon["join_token"])
    command = [PROGRAM, "run", "--url", daemon["url"], "--node", record["node_id"], "--token-file", token,
               "--state-dir", machine / "state", "--hold-dir", machine / "holds", "--shared-user",
               "--simulate", str(GPUS), "--simulate-seed", record["id"]]
    with open(machine / "log", "w") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    (machine / "pid").write_text(str(process.pid))


def describe(state, record):
    seen = subprocess.run([PROGRAM, "look", "--simulate", str(GPUS), "--simulate-seed", record["id"], "-o", "json"],
                          check=True, capture_output=True, text=True)
    gpus = json.loads(seen.stdout)["gpus"]
    return "127.0.0.1", [{"uuid": gpu["uuid"], "index": gpu["index"], "model": "h100-80g", "memory_mib": 81920}
                         for gpu in gpus]


def stop(state, record):
    machine = state / "machines" / record["id"]
    if (machine / "pid").exists():
        os.kill(int((machine / "pid").read_text()), signal.SIGTERM)
    shutil.rmtree(machine, ignore_errors=True)


main()
