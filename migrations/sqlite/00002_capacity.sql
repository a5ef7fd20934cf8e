-- +goose Up
-- +goose StatementBegin

CREATE TABLE pools (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    provisioner    TEXT    NOT NULL,
    region         TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    per_node       BIGINT  NOT NULL CHECK (per_node > 0),
    memory_mib     BIGINT  NOT NULL CHECK (memory_mib >= 0),
    node_cpus      BIGINT  NOT NULL CHECK (node_cpus >= 0),
    node_memory    BIGINT  NOT NULL CHECK (node_memory >= 0),
    online_share   BIGINT  NOT NULL CHECK (online_share BETWEEN 0 AND 1000),
    borrow_idle    BOOLEAN NOT NULL,
    price          BIGINT  NOT NULL CHECK (price >= 0),
    min_billing    BIGINT  NOT NULL CHECK (min_billing >= 0),
    alternates     TEXT    NOT NULL, -- JSON: where else its machines can be had
    min_nodes      BIGINT  NOT NULL CHECK (min_nodes >= 0),
    max_nodes      BIGINT  NOT NULL CHECK (max_nodes >= 0),
    warm_hold      BIGINT  NOT NULL CHECK (warm_hold >= 0),
    idle_release   BIGINT  NOT NULL CHECK (idle_release >= 0),
    max_lease      BIGINT  NOT NULL CHECK (max_lease >= 0),
    cleaning       BIGINT  NOT NULL CHECK (cleaning >= 0),
    max_creates    BIGINT  NOT NULL CHECK (max_creates >= 0),
    create_window  BIGINT  NOT NULL CHECK (create_window >= 0),
    paused         BOOLEAN NOT NULL,
    recovering_at  BIGINT  NOT NULL, -- 0: it does not
    recovering_why TEXT    NOT NULL,
    simulated      BOOLEAN NOT NULL,
    learned        TEXT    NOT NULL, -- JSON: boots, supply, demand
    created_at     BIGINT  NOT NULL,
    deleted_at     BIGINT  NOT NULL,
    revision       BIGINT  NOT NULL DEFAULT 0, -- of the transaction that last changed what is live in the pool
    definition_version BIGINT NOT NULL CHECK (definition_version >= 0), -- of what people set, not of what is learned
    version        BIGINT  NOT NULL CHECK (version > 0)
);

CREATE UNIQUE INDEX pools_name ON pools (name) WHERE deleted_at = 0;

CREATE TABLE nodes (
    id            TEXT    NOT NULL PRIMARY KEY,
    pool_id       TEXT    NOT NULL REFERENCES pools (id),
    slot          BIGINT  NOT NULL CHECK (slot >= 0),
    generation    BIGINT  NOT NULL CHECK (generation >= 0),
    token         TEXT    NOT NULL,
    provider_id   TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    simulated     BOOLEAN NOT NULL,
    reason        TEXT    NOT NULL,
    provisioner   TEXT    NOT NULL, -- where its machine comes from, and what that costs
    region        TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    price         BIGINT  NOT NULL CHECK (price >= 0),
    min_billing   BIGINT  NOT NULL CHECK (min_billing >= 0),
    billed_from   BIGINT  NOT NULL,
    billed_until  BIGINT  NOT NULL,
    expires_at    BIGINT  NOT NULL,
    quarantine    TEXT    NOT NULL, -- when it was kept out of use, as JSON; empty: never
    state         TEXT    NOT NULL CHECK (state IN ('requested', 'provisioning', 'booting', 'ready', 'draining', 'deprovisioning', 'gone', 'failed', 'lost', 'quarantined', 'needs_attention')),
    requested_at  BIGINT  NOT NULL,
    booting_at    BIGINT  NOT NULL,
    ready_at      BIGINT  NOT NULL,
    idle_since    BIGINT  NOT NULL,
    retired_at    BIGINT  NOT NULL,
    absent_at     BIGINT  NOT NULL,
    gone_at       BIGINT  NOT NULL,
    version       BIGINT  NOT NULL CHECK (version > 0)
);

-- At most one machine per place, whatever the planner thinks.
CREATE UNIQUE INDEX nodes_live_slot ON nodes (pool_id, slot) WHERE state NOT IN ('gone', 'failed');
CREATE INDEX nodes_slot ON nodes (slot, pool_id); -- in this order it cannot be taken for the live nodes of a pool, which are few
CREATE INDEX nodes_requested ON nodes (requested_at); -- reports
CREATE INDEX nodes_billed ON nodes (billed_until); -- costs

-- Machines with our tag that no node stood for, for as long as they were billed.
CREATE TABLE orphans (
    provisioner   TEXT   NOT NULL,
    machine       TEXT   NOT NULL, -- the provider's id
    node_id       TEXT   NOT NULL, -- as its tag says
    region        TEXT   NOT NULL,
    type          TEXT   NOT NULL,
    gpus          BIGINT NOT NULL CHECK (gpus >= 0),
    price         BIGINT NOT NULL CHECK (price >= 0),
    min_billing   BIGINT NOT NULL CHECK (min_billing >= 0),
    billed_from   BIGINT NOT NULL,
    billed_until  BIGINT NOT NULL, -- 0 while it stands
    PRIMARY KEY (provisioner, machine)
);

-- What workers have reported of the provisioners that they are configured with.
CREATE TABLE provisioners (
    name         TEXT   NOT NULL PRIMARY KEY,
    offers       TEXT   NOT NULL, -- JSON
    reported_at  BIGINT NOT NULL,
    holder       TEXT   NOT NULL DEFAULT '', -- the worker that it serves alone; empty: it serves all
    holder_host  TEXT   NOT NULL DEFAULT '',
    held_until   BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE gpus (
    node_id     TEXT   NOT NULL REFERENCES nodes (id),
    uuid        TEXT   NOT NULL,
    idx         BIGINT NOT NULL CHECK (idx >= 0),
    model       TEXT   NOT NULL,
    memory_mib  BIGINT NOT NULL CHECK (memory_mib >= 0),
    PRIMARY KEY (node_id, uuid)
);

CREATE TABLE reservations (
    id               TEXT    NOT NULL PRIMARY KEY,
    organization_id  TEXT    NOT NULL REFERENCES organizations (id),
    pool_id          TEXT    NOT NULL REFERENCES pools (id),
    name             TEXT    NOT NULL,
    class            TEXT    NOT NULL CHECK (class IN ('guaranteed', 'speculative')),
    origin           TEXT    NOT NULL CHECK (origin IN ('person', 'schedule', 'agent')),
    made_by          TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    workload         TEXT    NOT NULL CHECK (workload IN ('online', 'batch')),
    window_start     BIGINT  NOT NULL,
    window_end       BIGINT  NOT NULL,
    nodes            BIGINT  NOT NULL CHECK (nodes > 0),
    per_node         BIGINT  NOT NULL CHECK (per_node > 0),
    short            BIGINT  NOT NULL CHECK (short >= 0 AND short < per_node),
    slots            TEXT    NOT NULL,
    reason_code      TEXT    NOT NULL,
    probability      REAL    NOT NULL CHECK (probability >= 0 AND probability <= 1),
    degraded         BOOLEAN NOT NULL,
    reason           TEXT    NOT NULL,
    cost             BIGINT  NOT NULL CHECK (cost >= 0),
    state            TEXT    NOT NULL CHECK (state IN ('booked', 'waitlisted', 'warming', 'ready', 'claimed', 'cancelled', 'expired', 'failed')),
    created_at       BIGINT  NOT NULL,
    booked_at        BIGINT  NOT NULL, -- 0 while it has no place
    warmed_at        BIGINT  NOT NULL,
    ready_at         BIGINT  NOT NULL,
    ended_at         BIGINT  NOT NULL,
    version          BIGINT  NOT NULL CHECK (version > 0),
    CHECK (window_start <= window_end)
);

-- A new reservation pays for each index that it is in: three, with its key.
CREATE INDEX reservations_live ON reservations (pool_id, organization_id) WHERE state NOT IN ('claimed', 'cancelled', 'expired', 'failed'); -- a pool's state; an organization's part of it
CREATE INDEX reservations_over ON reservations (pool_id, window_start) WHERE state IN ('claimed', 'cancelled', 'expired', 'failed'); -- what was spent; a new row is not in it
CREATE INDEX reservations_page ON reservations (organization_id, id); -- lists
CREATE INDEX reservations_named ON reservations (name, created_at, id) WHERE name <> ''; -- the newest of a name

CREATE TABLE allocations (
    id               TEXT   NOT NULL PRIMARY KEY,
    organization_id  TEXT   NOT NULL REFERENCES organizations (id),
    pool_id          TEXT   NOT NULL REFERENCES pools (id),
    name             TEXT   NOT NULL,
    held_by          TEXT   NOT NULL,
    user_id          TEXT   NOT NULL,
    workload         TEXT   NOT NULL CHECK (workload IN ('online', 'batch')),
    nodes            BIGINT NOT NULL CHECK (nodes > 0),
    per_node         BIGINT NOT NULL CHECK (per_node > 0),
    short            BIGINT NOT NULL CHECK (short >= 0 AND short < per_node),
    slots            TEXT   NOT NULL,
    reservations     TEXT   NOT NULL,
    lease            BIGINT NOT NULL CHECK (lease >= 0),
    window_start     BIGINT NOT NULL,
    window_end       BIGINT NOT NULL,
    reason           TEXT   NOT NULL,
    state            TEXT   NOT NULL CHECK (state IN ('pending', 'active', 'releasing', 'released', 'failed', 'expired', 'cancelled')),
    requested_at     BIGINT NOT NULL,
    active_at        BIGINT NOT NULL,
    lease_until      BIGINT NOT NULL,
    ended_at         BIGINT NOT NULL,
    cost             BIGINT NOT NULL CHECK (cost >= 0),
    version          BIGINT NOT NULL CHECK (version > 0),
    CHECK (window_start <= window_end)
);

CREATE INDEX allocations_live ON allocations (pool_id, organization_id) WHERE state NOT IN ('released', 'failed', 'expired', 'cancelled'); -- a pool's state; an organization's part of it
CREATE INDEX allocations_over ON allocations (pool_id, window_start) WHERE state IN ('released', 'failed', 'expired', 'cancelled'); -- what was spent; a new row is not in it
CREATE INDEX allocations_started ON allocations (active_at); -- reports
CREATE INDEX allocations_page ON allocations (organization_id, id); -- lists
CREATE INDEX allocations_named ON allocations (name, id) WHERE name <> ''; -- the newest of a name

-- Who held which GPU when. until is NULL while it is held.
CREATE TABLE allocation_gpus (
    allocation_id  TEXT   NOT NULL REFERENCES allocations (id),
    node_id        TEXT   NOT NULL REFERENCES nodes (id),
    gpu_uuid       TEXT   NOT NULL,
    idx            BIGINT NOT NULL CHECK (idx >= 0),
    since          BIGINT NOT NULL,
    until          BIGINT,
    PRIMARY KEY (allocation_id, gpu_uuid)
);

-- A GPU is in at most one pair of hands.
CREATE UNIQUE INDEX allocation_gpus_held ON allocation_gpus (gpu_uuid) WHERE until IS NULL;
CREATE INDEX allocation_gpus_ended ON allocation_gpus (until); -- reports

CREATE TABLE schedules (
    id               TEXT    NOT NULL PRIMARY KEY,
    organization_id  TEXT    NOT NULL REFERENCES organizations (id),
    pool_id          TEXT    NOT NULL REFERENCES pools (id),
    name             TEXT    NOT NULL,
    gpus             BIGINT  NOT NULL CHECK (gpus > 0),
    nodes            BIGINT  NOT NULL CHECK (nodes >= 0),
    per_node         BIGINT  NOT NULL CHECK (per_node >= 0),
    even             BOOLEAN NOT NULL,
    start_local      TEXT    NOT NULL,
    timezone         TEXT    NOT NULL,
    rrule            TEXT    NOT NULL,
    ex_dates         TEXT    NOT NULL,
    length           BIGINT  NOT NULL CHECK (length > 0),
    dst_policy       TEXT    NOT NULL CHECK (dst_policy IN ('shift', 'skip')),
    paused           BOOLEAN NOT NULL,
    made_by          TEXT    NOT NULL,
    created_at       BIGINT  NOT NULL,
    done_until       BIGINT  NOT NULL,
    deleted_at       BIGINT  NOT NULL,
    version          BIGINT  NOT NULL CHECK (version > 0)
);

CREATE INDEX schedules_page ON schedules (organization_id, id);

-- What organizations have used of a pool, as fair share counts it, in JSON.
CREATE TABLE usages (
    pool_id          TEXT  NOT NULL REFERENCES pools (id),
    organization_id  TEXT  NOT NULL REFERENCES organizations (id),
    usage            TEXT  NOT NULL,
    PRIMARY KEY (pool_id, organization_id)
);
-- +goose StatementEnd
