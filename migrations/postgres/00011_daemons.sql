-- +goose Up
-- +goose StatementBegin

-- The daemons on nodes: by what they prove who they are. id is the node's; of a token or a
-- key only the id and the keyed hash of its secret are here. Empty ids: there is none.
CREATE TABLE node_daemons (
    id               TEXT   NOT NULL PRIMARY KEY REFERENCES nodes (id),
    generation       BIGINT NOT NULL,
    token_id         TEXT   NOT NULL,
    token_hash       BYTEA  NOT NULL,
    token_expires_at BIGINT NOT NULL,
    token_used_at    BIGINT NOT NULL, -- 0: it may still be used
    key_id           TEXT   NOT NULL,
    key_hash         BYTEA  NOT NULL,
    key_expires_at   BIGINT NOT NULL,
    old_key_id       TEXT   NOT NULL, -- the key before, for a moment after it was renewed
    old_key_hash     BYTEA  NOT NULL,
    old_key_until    BIGINT NOT NULL,
    boot_id          TEXT   NOT NULL,
    joined_at        BIGINT NOT NULL,
    clears           BIGINT NOT NULL, -- how often an operator cleared what it says of its GPUs
    refused_at       BIGINT NOT NULL, -- when a refusal of it was last journalled
    version          BIGINT NOT NULL CHECK (version > 0)
);

CREATE UNIQUE INDEX node_daemons_token ON node_daemons (token_id) WHERE token_id <> '';
CREATE UNIQUE INDEX node_daemons_key ON node_daemons (key_id) WHERE key_id <> '';
CREATE INDEX node_daemons_old_key ON node_daemons (old_key_id) WHERE old_key_id <> '';

-- What the daemons said last, at most half a minute old while they call.
CREATE TABLE node_presences (
    node_id  TEXT   NOT NULL PRIMARY KEY REFERENCES nodes (id),
    seen_at  BIGINT NOT NULL,
    boot_id  TEXT   NOT NULL,
    epoch    BIGINT NOT NULL, -- of the daemon within the boot
    program  TEXT   NOT NULL, -- the version of the daemon
    look     BYTEA  NOT NULL  -- JSON
);

CREATE INDEX node_presences_seen ON node_presences (seen_at);
-- +goose StatementEnd
