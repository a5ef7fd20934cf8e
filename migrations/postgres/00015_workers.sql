-- +goose Up
-- +goose StatementBegin

-- The workers of the installation, as each noted last that it was there: without one,
-- nothing is made, cleaned or removed.
CREATE TABLE workers (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    host    TEXT   NOT NULL, -- where it runs, for people
    seen_at BIGINT NOT NULL, -- microseconds since 1970
    until   BIGINT NOT NULL  -- when it is taken for gone unless it is noted again
);
-- +goose StatementEnd
