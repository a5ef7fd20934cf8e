-- +goose Up
-- +goose StatementBegin

-- How often a job has left for others; and, as JSON, how the attempt that it has is being ended: empty, it is not.
ALTER TABLE jobs ADD COLUMN preemptions BIGINT NOT NULL DEFAULT 0 CHECK (preemptions >= 0);
ALTER TABLE jobs ADD COLUMN ending TEXT NOT NULL DEFAULT '';

-- What people have used of the rate at which they may submit jobs; without a person, what a key has.
CREATE TABLE job_entries (
    who     TEXT    NOT NULL PRIMARY KEY,
    full_at BIGINT  NOT NULL,
    day     BIGINT  NOT NULL,
    count   BIGINT  NOT NULL CHECK (count >= 0)
);
-- +goose StatementEnd
