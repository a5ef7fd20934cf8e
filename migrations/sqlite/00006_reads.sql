-- +goose Up
-- +goose StatementBegin

-- Lists are read the newest first, of everybody or of one organization.
DROP INDEX reservations_page;
CREATE INDEX reservations_newest ON reservations (created_at);
CREATE INDEX reservations_tenant ON reservations (organization_id, created_at);

-- Costs: what was billed lately, who held its GPUs, and for whom it stood ready in vain.
DROP INDEX nodes_billed;
CREATE INDEX nodes_billed ON nodes (billed_until) WHERE billed_from > 0;
CREATE INDEX allocation_gpus_node ON allocation_gpus (node_id);
CREATE INDEX reservations_missed ON reservations (ended_at) WHERE state = 'expired' AND ready_at > 0;

-- Waits are read from the index alone.
DROP INDEX allocations_started;
CREATE INDEX allocations_started ON allocations (active_at, requested_at);

-- Nothing read these any more.
DROP INDEX allocation_gpus_ended;
DROP INDEX nodes_requested;
-- +goose StatementEnd
