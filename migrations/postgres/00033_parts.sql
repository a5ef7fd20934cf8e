-- +goose Up
-- +goose StatementBegin

-- The reservation that was divided because somebody claimed a part of it, in its own row, in those of the parts, and in
-- those of what is left; empty: nobody did. And the allocation that has the GPUs until the window begins; empty: none.
ALTER TABLE reservations ADD COLUMN part_of TEXT NOT NULL DEFAULT '';
ALTER TABLE reservations ADD COLUMN awaits TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
