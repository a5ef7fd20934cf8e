-- +goose Up
-- +goose StatementBegin

CREATE TABLE events (
    seq              INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    organization_id  TEXT    NOT NULL,
    at               BIGINT  NOT NULL,
    type             TEXT    NOT NULL,
    subject          TEXT    NOT NULL,
    pool_id          TEXT    NOT NULL,
    actor            TEXT    NOT NULL,
    via              TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    message          TEXT    NOT NULL,
    decision         TEXT    NOT NULL DEFAULT ''
);

CREATE INDEX events_organization ON events (organization_id, seq); -- a tenant's stream
CREATE INDEX events_subject ON events (subject, seq); -- what happened to one thing

-- Seals of the journal: each covers the events after the one before it, up to
-- last. tags has, for each event, how much its number is larger than the one
-- before, and a keyed hash of what it says; mac chains the seals. A seal is never
-- changed.
CREATE TABLE journal_seals (
    number      BIGINT NOT NULL PRIMARY KEY CHECK (number > 0),
    format      BIGINT NOT NULL CHECK (format > 0),
    key_id      TEXT   NOT NULL,
    first       BIGINT NOT NULL,
    last        BIGINT NOT NULL CHECK (last >= first),
    count       BIGINT NOT NULL CHECK (count > 0),
    sealed_at   BIGINT NOT NULL,
    tags        TEXT   NOT NULL,
    mac         TEXT   NOT NULL
);

-- What proves that a process has the pepper under which the keys were hashed: a
-- keyed hash of a constant. One row, made at the first start and never changed.
CREATE TABLE installation (
    id            BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    pepper_check  TEXT   NOT NULL CHECK (pepper_check <> '')
);

-- What each process wrote last, only to see whether it can: at is its latest
-- attempt, room is as much as a verb's rows may need.
CREATE TABLE heartbeats (
    process TEXT   NOT NULL,
    beat    BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    room    TEXT   NOT NULL,
    PRIMARY KEY (process, beat)
);

-- What somebody was shown before they say yes. applied_at 0 means not applied;
-- answer is what applying it answered.
CREATE TABLE plans (
    id               TEXT   NOT NULL PRIMARY KEY,
    organization_id  TEXT   NOT NULL,
    made_by          TEXT   NOT NULL,
    kind             TEXT   NOT NULL,
    request          TEXT   NOT NULL,
    effect           TEXT   NOT NULL,
    fingerprint      TEXT   NOT NULL,
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    applied_at       BIGINT NOT NULL,
    status           BIGINT NOT NULL,
    answer           TEXT   NOT NULL,
    version          BIGINT NOT NULL CHECK (version > 0)
);

CREATE INDEX plans_expired ON plans (expires_at);

-- What was expected of a window and how it came out. Nothing before gpus is ever
-- changed; from there on it is written once, when closed_at is set. Fractions that
-- may be missing are -1 then. An id is its sender's, so that tenants can have the
-- same.
CREATE TABLE forecasts (
    seq              INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id               TEXT NOT NULL,
    organization_id  TEXT NOT NULL REFERENCES organizations (id),
    pool_id          TEXT NOT NULL REFERENCES pools (id),
    made_by          TEXT NOT NULL,
    source           TEXT NOT NULL CHECK (source IN ('statistics', 'llm', 'extractor', 'rule', 'person')),
    reason_code      TEXT NOT NULL,
    model            TEXT NOT NULL,
    prompt_hash      TEXT NOT NULL,
    evidence_hash    TEXT NOT NULL,
    issued_at        BIGINT NOT NULL,
    window_start     BIGINT NOT NULL,
    window_end       BIGINT NOT NULL,
    p10              BIGINT NOT NULL CHECK (p10 >= 0),
    p50              BIGINT NOT NULL CHECK (p50 >= p10),
    p90              BIGINT NOT NULL CHECK (p90 >= p50),
    mean             REAL NOT NULL CHECK (mean >= 0),
    probability      REAL NOT NULL CHECK (probability >= 0 AND probability <= 1),
    baseline         REAL NOT NULL CHECK (baseline = -1 OR baseline >= 0 AND baseline <= 1),
    influence        REAL NOT NULL CHECK (influence = -1 OR influence >= 0 AND influence <= 1),
    recorded_at      BIGINT NOT NULL,
    gpus             BIGINT NOT NULL CHECK (gpus >= 0),
    counted_at       BIGINT NOT NULL,
    closed_at        BIGINT NOT NULL,
    pinball          REAL NOT NULL CHECK (pinball >= 0),
    brier            REAL NOT NULL CHECK (brier >= 0),
    log_loss         REAL NOT NULL CHECK (log_loss >= 0),
    inside           BOOLEAN NOT NULL,
    baseline_brier   REAL NOT NULL CHECK (baseline_brier = -1 OR baseline_brier >= 0 AND baseline_brier <= 1),
    UNIQUE (id, organization_id),
    CHECK (window_start < window_end)
);

CREATE INDEX forecasts_page ON forecasts (organization_id, seq); -- lists
CREATE INDEX forecasts_open ON forecasts (organization_id, seq) WHERE closed_at = 0; -- what is to be closed
CREATE INDEX forecasts_window ON forecasts (organization_id, window_start); -- reports
CREATE INDEX forecasts_day ON forecasts (made_by, recorded_at); -- what a key added today

-- run_at 0 means never. dispatch_after is when the row may be sent (again).
CREATE TABLE tasks (
    id              TEXT   NOT NULL PRIMARY KEY,
    kind            TEXT   NOT NULL,
    subject         TEXT   NOT NULL,
    key             TEXT   NOT NULL,
    state           TEXT   NOT NULL CHECK (state IN ('ready', 'running', 'done', 'dead')),
    attempt         BIGINT NOT NULL CHECK (attempt >= 0),
    run_at          BIGINT NOT NULL,
    wake_at         BIGINT NOT NULL,
    dispatches      BIGINT NOT NULL CHECK (dispatches >= 0),
    dispatch_after  BIGINT NOT NULL,
    fence           BIGINT NOT NULL CHECK (fence >= 0),
    lease_until     BIGINT NOT NULL,
    last_error      TEXT   NOT NULL,
    failures        BIGINT NOT NULL CHECK (failures >= 0), -- in a row
    failed_at       BIGINT NOT NULL, -- the last of them
    created_at      BIGINT NOT NULL,
    finished_at     BIGINT NOT NULL
);

CREATE UNIQUE INDEX tasks_key ON tasks (key) WHERE key <> ''; -- one row for ever
CREATE INDEX tasks_due ON tasks (run_at) WHERE state = 'ready'; -- dispatch
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE state = 'running'; -- reap
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE state = 'done'; -- sweep
CREATE INDEX tasks_failing ON tasks (failures) WHERE failures > 0; -- what fails again and again
CREATE INDEX tasks_open ON tasks (subject, kind) WHERE state IN ('ready', 'running'); -- is there work for it already
-- +goose StatementEnd
