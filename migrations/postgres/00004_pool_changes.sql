-- +goose Up
-- +goose StatementBegin

ALTER TABLE pools ADD COLUMN changes BIGINT NOT NULL DEFAULT 0; -- how often what is live in the pool has changed

-- The latest changes of each pool: which rows each transaction wrote. A process
-- that remembers a pool as it was reads only these rows. The oldest are deleted.
CREATE TABLE pool_changes (
    pool_id   TEXT   NOT NULL,
    number    BIGINT NOT NULL, -- the pool's count of changes after it
    previous  BIGINT NOT NULL, -- the pool's revision before it
    revision  BIGINT NOT NULL, -- and after it
    ids       TEXT   NOT NULL, -- JSON: nodes, reservations, allocations, organizations of usages
    PRIMARY KEY (pool_id, number)
);

DROP TABLE meta; -- nothing was ever written to it
-- +goose StatementEnd
