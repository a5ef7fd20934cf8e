-- +goose Up

-- Numbers are handed out before commit, so a smaller one can appear after a
-- larger one. xid tells readers which rows no open transaction can still precede.
CREATE TABLE events (
    seq              BIGINT  NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id  TEXT    NOT NULL,
    at               BIGINT  NOT NULL,
    type             TEXT    NOT NULL,
    subject          TEXT    NOT NULL,
    pool_id          TEXT    NOT NULL,
    actor            TEXT    NOT NULL,
    via              TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    message          TEXT    NOT NULL,
    decision         TEXT    NOT NULL DEFAULT '',
    xid              XID8    NOT NULL DEFAULT pg_current_xact_id()
);

CREATE INDEX events_organization ON events (organization_id, seq); -- a tenant's stream
CREATE INDEX events_subject ON events (subject, seq); -- what happened to one thing

-- What somebody was shown before they say yes. applied_at 0 means not applied;
-- answer is what applying it answered.
CREATE TABLE plans (
    id               TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    organization_id  TEXT   NOT NULL,
    made_by          TEXT   NOT NULL,
    kind             TEXT   NOT NULL,
    request          TEXT   NOT NULL,
    effect           TEXT   NOT NULL,
    mark             TEXT   NOT NULL,
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    applied_at       BIGINT NOT NULL,
    status           BIGINT NOT NULL,
    answer           TEXT   NOT NULL,
    version          BIGINT NOT NULL CHECK (version > 0)
);

CREATE INDEX plans_expired ON plans (expires_at);

-- run_at 0 means never. dispatch_after is when the row may be sent (again).
CREATE TABLE tasks (
    id              TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
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
    created_at      BIGINT NOT NULL,
    finished_at     BIGINT NOT NULL
);

CREATE UNIQUE INDEX tasks_key ON tasks (key) WHERE key <> ''; -- one row for ever
CREATE INDEX tasks_due ON tasks (run_at) WHERE state = 'ready'; -- dispatch
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE state = 'running'; -- reap
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE state = 'done'; -- sweep
CREATE INDEX tasks_open ON tasks (subject, kind) WHERE state IN ('ready', 'running'); -- is there work for it already
