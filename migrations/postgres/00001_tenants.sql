-- +goose Up
-- +goose StatementBegin

CREATE TABLE organizations (
    id                   TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    name                 TEXT   NOT NULL,
    max_gpus             BIGINT NOT NULL CHECK (max_gpus >= 0),
    speculation_per_day  BIGINT NOT NULL CHECK (speculation_per_day >= 0),
    -- In the limits from here on -1 is none.
    max_gpu_memory_mib   BIGINT NOT NULL CHECK (max_gpu_memory_mib >= -1),
    max_cpus             BIGINT NOT NULL CHECK (max_cpus >= -1),
    max_memory_mib       BIGINT NOT NULL CHECK (max_memory_mib >= -1),
    max_bookings         BIGINT NOT NULL CHECK (max_bookings >= -1),
    cohort               TEXT   NOT NULL,
    borrowing            TEXT   NOT NULL, -- a JSON list of a limit for each resource
    lending              TEXT   NOT NULL,
    period               TEXT   NOT NULL CHECK (period IN ('day', 'month')),
    gpu_hours            BIGINT NOT NULL CHECK (gpu_hours >= -1),
    money                BIGINT NOT NULL CHECK (money >= -1),
    weight               BIGINT NOT NULL CHECK (weight > 0),
    created_at           BIGINT NOT NULL,
    deleted_at           BIGINT NOT NULL, -- 0: it is there
    version              BIGINT NOT NULL CHECK (version > 0)
);

-- A name may be used again once nobody has it any more.
CREATE UNIQUE INDEX organizations_name ON organizations (name) WHERE deleted_at = 0;

CREATE INDEX organizations_cohort ON organizations (cohort) WHERE cohort <> '';

CREATE TABLE users (
    id               TEXT COLLATE "C"    NOT NULL PRIMARY KEY,
    organization_id  TEXT    NOT NULL REFERENCES organizations (id),
    email            TEXT    NOT NULL,
    role             TEXT    NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'operator')),
    active           BOOLEAN NOT NULL,
    cap_gpus         BIGINT  NOT NULL CHECK (cap_gpus >= 0),
    cap_per_day      BIGINT  NOT NULL CHECK (cap_per_day >= 0),
    cap_lead         BIGINT  NOT NULL CHECK (cap_lead >= 0),
    cap_window       BIGINT  NOT NULL CHECK (cap_window >= 0),
    cap_gpu_hours    BIGINT  NOT NULL CHECK (cap_gpu_hours >= -1), -- -1: none
    created_at       BIGINT  NOT NULL,
    deleted_at       BIGINT  NOT NULL,
    version          BIGINT  NOT NULL CHECK (version > 0)
);

CREATE UNIQUE INDEX users_email ON users (organization_id, email) WHERE deleted_at = 0;

-- An operator's key belongs to no organization, so organization_id has no foreign key.
CREATE TABLE api_keys (
    id               TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    organization_id  TEXT   NOT NULL,
    user_id          TEXT   NOT NULL,
    name             TEXT   NOT NULL,
    kind             TEXT   NOT NULL CHECK (kind IN ('person', 'agent')),
    role             TEXT   NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'operator')),
    cap_gpus         BIGINT NOT NULL CHECK (cap_gpus >= 0),
    cap_per_day      BIGINT NOT NULL CHECK (cap_per_day >= 0),
    cap_lead         BIGINT NOT NULL CHECK (cap_lead >= 0),
    cap_window       BIGINT NOT NULL CHECK (cap_window >= 0),
    cap_gpu_hours    BIGINT NOT NULL CHECK (cap_gpu_hours >= -1), -- -1: none
    hash             BYTEA NOT NULL,
    pepper_version   BIGINT NOT NULL,
    last4            TEXT   NOT NULL,
    created_by       TEXT   NOT NULL,
    -- The key whose caps, role and end hold for this one too; '': it stands for itself.
    parent_id        TEXT COLLATE "C"   NOT NULL,
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    revoked_at       BIGINT NOT NULL,
    last_used_at     BIGINT NOT NULL,
    version          BIGINT NOT NULL CHECK (version > 0)
);

CREATE INDEX api_keys_organization ON api_keys (organization_id, id);
CREATE INDEX api_keys_parent ON api_keys (parent_id);
CREATE INDEX api_keys_user ON api_keys (user_id);

-- Who may not pre-warm on a guess, one row each; organization_id '' is the whole
-- installation. until 0 means until somebody resumes; one in the past is over.
CREATE TABLE prewarm_pauses (
    organization_id  TEXT COLLATE "C"   NOT NULL PRIMARY KEY,
    reason           TEXT   NOT NULL,
    paused_by        TEXT   NOT NULL,
    paused_at        BIGINT NOT NULL,
    until            BIGINT NOT NULL
);

CREATE TABLE idempotency (
    organization_id  TEXT   NOT NULL,
    route            TEXT   NOT NULL,
    key              TEXT   NOT NULL,
    hash             BYTEA NOT NULL,
    status           BIGINT NOT NULL,
    body             BYTEA NOT NULL,
    created_at       BIGINT NOT NULL,
    PRIMARY KEY (organization_id, route, key)
);

CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE meta (
    key    TEXT NOT NULL PRIMARY KEY,
    value  TEXT NOT NULL
);
-- +goose StatementEnd
