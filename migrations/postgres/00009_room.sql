-- +goose Up
-- +goose StatementBegin

-- What is free on the nodes of a provisioner's cluster that are up.
ALTER TABLE provisioners ADD COLUMN room TEXT NOT NULL DEFAULT '[]'; -- JSON: by pool
-- +goose StatementEnd
