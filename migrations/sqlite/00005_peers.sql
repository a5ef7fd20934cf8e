-- +goose Up
-- +goose StatementBegin

-- The servers of the installation that others can reach. Who has been there
-- longest decides what they all are asked.
CREATE TABLE peers (
    id      TEXT   NOT NULL PRIMARY KEY,
    address TEXT   NOT NULL, -- host:port, for other servers
    since   BIGINT NOT NULL, -- microseconds since 1970
    until   BIGINT NOT NULL  -- when it is taken for gone unless it is noted again
);
-- +goose StatementEnd
