-- +goose Up
-- +goose StatementBegin

-- The priority of a job is the name of a class, which the configuration has.
ALTER TABLE jobs DROP CONSTRAINT jobs_priority_check;

-- From which jobs of its organization the job of an allocation stays apart, as JSON.
ALTER TABLE allocations ADD COLUMN apart TEXT NOT NULL DEFAULT '[]';
-- +goose StatementEnd
