-- +goose Up
-- +goose StatementBegin

-- What users have used of a pool, in JSON like the usages of their organizations, of which it is a part.
CREATE TABLE user_usages (
    pool_id          TEXT COLLATE "C"  NOT NULL REFERENCES pools (id),
    organization_id  TEXT COLLATE "C"  NOT NULL REFERENCES organizations (id),
    user_id          TEXT COLLATE "C"  NOT NULL,
    usage            TEXT NOT NULL,
    PRIMARY KEY (pool_id, organization_id, user_id)
);
-- +goose StatementEnd
