-- +goose Up
-- +goose StatementBegin

-- The nodes, as JSON, on which work of an allocation's holder was begun by their daemons:
-- those have to prove that nothing of it is left.
ALTER TABLE allocations ADD COLUMN opened TEXT NOT NULL DEFAULT '[]';
-- +goose StatementEnd
