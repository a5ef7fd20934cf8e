-- +goose Up
-- +goose StatementBegin

-- For how long the last attempt of a job was predicted to run when it got its GPUs, in microseconds: less with a
-- chance of 10, 50 and 90 percent; 0: nobody could say.
ALTER TABLE jobs ADD COLUMN predicted_p10 BIGINT NOT NULL DEFAULT 0 CHECK (predicted_p10 >= 0);
ALTER TABLE jobs ADD COLUMN predicted_p50 BIGINT NOT NULL DEFAULT 0 CHECK (predicted_p50 >= 0);
ALTER TABLE jobs ADD COLUMN predicted_p90 BIGINT NOT NULL DEFAULT 0 CHECK (predicted_p90 >= 0);

-- What an organization ran lately, of one name or of all. Jobs that wait are in neither, so that submitting costs the same.
CREATE INDEX jobs_run_named ON jobs (organization_id, name, ended_at) WHERE state IN ('completed', 'failed') AND started_at > 0;
CREATE INDEX jobs_run ON jobs (organization_id, ended_at) WHERE state IN ('completed', 'failed') AND started_at > 0;
-- +goose StatementEnd
