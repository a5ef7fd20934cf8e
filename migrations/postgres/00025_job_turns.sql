-- +goose Up
-- +goose StatementBegin

-- Whose turn is next in a pool, as JSON, as the scheduler decided it last: who gives GPUs back has the next job start.
CREATE TABLE job_turns (
    pool_id    TEXT    NOT NULL PRIMARY KEY REFERENCES pools (id),
    decided_at BIGINT  NOT NULL,
    jobs       TEXT    NOT NULL
);
-- +goose StatementEnd
