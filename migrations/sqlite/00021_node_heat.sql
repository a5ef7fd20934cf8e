-- +goose Up
-- +goose StatementBegin

-- How hot the hottest GPU of a node was when that last mattered (°C; 0: never), and until when no job starts there
-- (microseconds; 0: it was never too hot).
ALTER TABLE nodes ADD COLUMN celsius INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN hot_until INTEGER NOT NULL DEFAULT 0;
-- +goose StatementEnd
