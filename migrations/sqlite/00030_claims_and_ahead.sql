-- +goose Up
-- +goose StatementBegin

-- Whose jobs claim a reservation by themselves: none, mine (its maker's) or organization. What people reserved before
-- was promised to whoever claims it by hand. And the job that claimed it; empty: none did.
ALTER TABLE reservations ADD COLUMN for_jobs TEXT NOT NULL DEFAULT 'none'
    CHECK (for_jobs IN ('none', 'mine', 'organization'));
ALTER TABLE reservations ADD COLUMN job_id TEXT NOT NULL DEFAULT '';
UPDATE reservations SET for_jobs = 'organization' WHERE class = 'speculative' OR origin <> 'person';

-- Jobs that are put off or wait for others, and when they are predicted to start where, as JSON: nodes are ready by
-- then.
ALTER TABLE job_turns ADD COLUMN ahead TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
