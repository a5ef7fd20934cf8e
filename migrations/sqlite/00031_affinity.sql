-- +goose Up
-- +goose StatementBegin

-- The priority of a job is the name of a class, which the configuration has.
ALTER TABLE jobs ADD COLUMN class TEXT NOT NULL DEFAULT '';
UPDATE jobs SET class = priority;
ALTER TABLE jobs DROP COLUMN priority;
ALTER TABLE jobs RENAME COLUMN class TO priority;

-- From which jobs of its organization the job of an allocation stays apart, as JSON.
ALTER TABLE allocations ADD COLUMN apart TEXT NOT NULL DEFAULT '[]';
-- +goose StatementEnd
