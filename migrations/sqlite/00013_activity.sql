-- +goose Up
-- +goose StatementBegin

-- What the GPUs of a node do, as its daemon tells: of each the last stretch, as JSON, which
-- reaches to seen_at.
ALTER TABLE node_presences ADD COLUMN activity TEXT NOT NULL DEFAULT '[]';

-- The stretches before: times in which a GPU was looked at all along, and was idle or in
-- use. What is in none was not observed.
CREATE TABLE gpu_stretches (
    node_id   TEXT    NOT NULL REFERENCES nodes (id),
    gpu_uuid  TEXT    NOT NULL,
    since     BIGINT  NOT NULL,
    until     BIGINT  NOT NULL,
    idle      BOOLEAN NOT NULL,
    PRIMARY KEY (node_id, gpu_uuid, since),
    CHECK (since < until)
);

-- What happens to allocations whose GPUs are idle for so long; 0: nothing.
ALTER TABLE pools ADD COLUMN idle_warn BIGINT NOT NULL DEFAULT 0 CHECK (idle_warn >= 0);
ALTER TABLE pools ADD COLUMN idle_reclaim BIGINT NOT NULL DEFAULT 0 CHECK (idle_reclaim >= 0);

-- When the holder was last told that the GPUs are idle; 0: never.
ALTER TABLE allocations ADD COLUMN idle_warned_at BIGINT NOT NULL DEFAULT 0;
-- +goose StatementEnd
