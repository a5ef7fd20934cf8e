-- +goose Up
-- +goose StatementBegin

-- When a job that waits was first predicted to start, in microseconds: earlier with a chance of 10, 50 and 90 percent;
-- 0: it never was. Nothing but that prediction is ever written here.
ALTER TABLE jobs ADD COLUMN start_told_at BIGINT NOT NULL DEFAULT 0 CHECK (start_told_at >= 0);
ALTER TABLE jobs ADD COLUMN start_p10 BIGINT NOT NULL DEFAULT 0 CHECK (start_p10 >= 0);
ALTER TABLE jobs ADD COLUMN start_p50 BIGINT NOT NULL DEFAULT 0 CHECK (start_p50 >= 0);
ALTER TABLE jobs ADD COLUMN start_p90 BIGINT NOT NULL DEFAULT 0 CHECK (start_p90 >= 0);

-- Those that came out. Jobs that wait are not in it, so that submitting costs the same.
CREATE INDEX jobs_start_told ON jobs (organization_id, started_at)
    WHERE start_told_at > 0 AND attempt = 1 AND started_at > 0;
-- +goose StatementEnd
