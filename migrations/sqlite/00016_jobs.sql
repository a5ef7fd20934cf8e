-- +goose Up
-- +goose StatementBegin

-- Commands that people submitted. The spec, as JSON, is what never changes of one.
CREATE TABLE jobs (
    id              TEXT    NOT NULL PRIMARY KEY,
    version         BIGINT  NOT NULL,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    pool_id         TEXT    NOT NULL REFERENCES pools (id),
    name            TEXT    NOT NULL,
    submitted_by    TEXT    NOT NULL,
    user_id         TEXT    NOT NULL,
    priority        TEXT    NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
    nodes           BIGINT  NOT NULL CHECK (nodes > 0),
    per_node        BIGINT  NOT NULL CHECK (per_node > 0),
    short           BIGINT  NOT NULL CHECK (short >= 0),
    spec            TEXT    NOT NULL,
    input           BLOB    NOT NULL,
    array_id        TEXT    NOT NULL,
    array_index     BIGINT  NOT NULL,
    not_before      BIGINT  NOT NULL,
    attempt         BIGINT  NOT NULL CHECK (attempt >= 0),
    allocation_id   TEXT    NOT NULL,
    failures        BIGINT  NOT NULL CHECK (failures >= 0),
    losses          BIGINT  NOT NULL CHECK (losses >= 0),
    reason          TEXT    NOT NULL,
    attempt_end     TEXT    NOT NULL,
    gpu_time        BIGINT  NOT NULL CHECK (gpu_time >= 0),
    cost            BIGINT  NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'held', 'scheduled', 'running', 'preempted', 'completed', 'failed', 'cancelled')),
    submitted_at    BIGINT  NOT NULL,
    scheduled_at    BIGINT  NOT NULL,
    started_at      BIGINT  NOT NULL,
    ended_at        BIGINT  NOT NULL
);
CREATE INDEX jobs_of_organization ON jobs (organization_id, id);
CREATE INDEX jobs_live ON jobs (pool_id, id) WHERE state NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX jobs_of_array ON jobs (array_id, id) WHERE array_id <> '';

-- Attempts of jobs on the nodes that they run on.
CREATE TABLE job_ranks (
    job_id      TEXT    NOT NULL REFERENCES jobs (id),
    attempt     BIGINT  NOT NULL,
    rank        BIGINT  NOT NULL,
    node_id     TEXT    NOT NULL REFERENCES nodes (id),
    state       TEXT    NOT NULL CHECK (state = 'ordered' OR state = 'running' OR state = 'ended'),
    attempt_end TEXT    NOT NULL,
    PRIMARY KEY (job_id, attempt, rank)
);
CREATE INDEX job_ranks_of_node ON job_ranks (node_id) WHERE state <> 'ended';

-- What they wrote, as JSON, by where it begins among all that the rank wrote.
CREATE TABLE job_output (
    job_id      TEXT    NOT NULL REFERENCES jobs (id),
    attempt     BIGINT  NOT NULL,
    rank        BIGINT  NOT NULL,
    starts_at   BIGINT  NOT NULL,
    ends_at     BIGINT  NOT NULL,
    pieces      BLOB    NOT NULL,
    PRIMARY KEY (job_id, attempt, rank, starts_at),
    CHECK (starts_at < ends_at)
);

-- The job that an allocation was made for.
ALTER TABLE allocations ADD COLUMN job_id TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
