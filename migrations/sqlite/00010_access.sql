-- +goose Up
-- +goose StatementBegin

-- What the holder of GPUs is told of a pool's nodes: with it, no address and no way in.
ALTER TABLE pools ADD COLUMN devices_only BOOLEAN NOT NULL DEFAULT FALSE;
-- +goose StatementEnd
