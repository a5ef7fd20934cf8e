-- +goose Up
-- +goose StatementBegin

-- How many bookings may have one GPU of the pool at once; 0 and 1: each GPU has one holder.
ALTER TABLE pools ADD COLUMN shares_per_gpu BIGINT NOT NULL DEFAULT 0 CHECK (shares_per_gpu >= 0);
-- +goose StatementEnd
