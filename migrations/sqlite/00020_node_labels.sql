-- +goose Up
-- +goose StatementBegin

-- What operators say of a node, as JSON: labels that jobs ask for, and taints that keep jobs away; empty: nothing.
ALTER TABLE nodes ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN taints TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
