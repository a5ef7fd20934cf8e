-- +goose Up
-- +goose StatementBegin

-- Since when a job's wait counts: since it could run, or shall (microseconds; 0: something other than time keeps it from
-- starting, as its hold or what it waits for). Of those that wait for other jobs nobody wrote down when those ended.
ALTER TABLE jobs ADD COLUMN eligible_at BIGINT NOT NULL DEFAULT 0;
UPDATE jobs SET eligible_at = CASE
    WHEN state = 'held' THEN 0
    WHEN state = 'pending' AND attempt = 0 AND spec LIKE '%,"dependencies":[%' THEN 0
    WHEN attempt = 0 AND not_before > submitted_at THEN not_before
    ELSE submitted_at END
    WHERE state NOT IN ('completed', 'failed', 'cancelled');

-- What an organization ran lately, of one name or of all, with what somebody cancelled.
DROP INDEX jobs_run_named;
DROP INDEX jobs_run;
CREATE INDEX jobs_run_named ON jobs (organization_id, name, ended_at) WHERE state IN ('completed', 'failed', 'cancelled') AND started_at > 0;
CREATE INDEX jobs_run ON jobs (organization_id, ended_at) WHERE state IN ('completed', 'failed', 'cancelled') AND started_at > 0;
-- +goose StatementEnd
