-- +goose Up
-- +goose StatementBegin

-- What operators say of all nodes of a pool, as JSON, as nodes.labels and nodes.taints are; empty: nothing.
ALTER TABLE pools ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE pools ADD COLUMN taints TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
