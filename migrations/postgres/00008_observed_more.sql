-- +goose Up
-- +goose StatementBegin

-- What else is on the nodes that are kept warm in a cluster with a scheduler of its own.
ALTER TABLE nodes ADD COLUMN taken TEXT NOT NULL DEFAULT ''; -- why no promise can have it; empty: it can

-- How well a provisioner's cluster is watched, and what waits there.
ALTER TABLE provisioners ADD COLUMN blind_since BIGINT NOT NULL DEFAULT 0; -- no look was complete since; 0: the last was
ALTER TABLE provisioners ADD COLUMN keep_within BIGINT NOT NULL DEFAULT 0;
ALTER TABLE provisioners ADD COLUMN waiting TEXT NOT NULL DEFAULT '[]'; -- JSON: by pool and reason

-- What observed work waited for is counted from the index alone.
CREATE INDEX allocations_observed
    ON allocations (active_at, waited_for, requested_at, queued_at, pool_id, organization_id) WHERE work <> '';
-- +goose StatementEnd
