-- +goose Up
-- +goose StatementBegin

-- Pools in which a cluster's own scheduler places the work, and what it placed there.
ALTER TABLE pools ADD COLUMN observed BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE pools ADD COLUMN holders TEXT NOT NULL DEFAULT '{}'; -- JSON: whose the work is
ALTER TABLE allocations ADD COLUMN work TEXT NOT NULL DEFAULT ''; -- the cluster's id; empty: it was asked for
ALTER TABLE allocations ADD COLUMN work_account TEXT NOT NULL DEFAULT '';
ALTER TABLE allocations ADD COLUMN work_user TEXT NOT NULL DEFAULT '';
ALTER TABLE allocations ADD COLUMN work_namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE allocations ADD COLUMN work_queue TEXT NOT NULL DEFAULT '';
ALTER TABLE allocations ADD COLUMN queued_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE allocations ADD COLUMN waited_for TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX allocations_work ON allocations (pool_id, work) WHERE work <> ''; -- work is counted once

-- Waits are read from the index alone, and work that nobody watched is left out.
DROP INDEX allocations_started;
CREATE INDEX allocations_started ON allocations (active_at, requested_at, waited_for);

-- How far a provisioner's cluster was watched.
ALTER TABLE provisioners ADD COLUMN observed_mark TEXT NOT NULL DEFAULT '';
ALTER TABLE provisioners ADD COLUMN observed_at BIGINT NOT NULL DEFAULT 0; -- by the cluster's clock
-- +goose StatementEnd
