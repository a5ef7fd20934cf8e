-- +goose Up
-- +goose StatementBegin

-- The oldest driver with which a node of a pool is used; empty: any.
ALTER TABLE pools ADD COLUMN min_driver TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
