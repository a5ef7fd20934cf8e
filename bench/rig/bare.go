package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// bareRows is how many rows a Bare chooses from: more than fit on a page, so
// that two of them rarely share one.
const bareRows = 10_000

// Bare is the least that a claim could be: BEGIN, an UPDATE of two rows by their
// keys, COMMIT, on a connection of its own. It is not safe for concurrent use.
type Bare struct {
	conn *pgx.Conn
	n    int
}

// NewBare connects, and makes the table unless it is there.
func NewBare(ctx context.Context, d *Database) (*Bare, error) {
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, fmt.Sprintf(`BEGIN;
		SELECT pg_advisory_xact_lock(1);
		CREATE TABLE IF NOT EXISTS bare (
			id BIGINT NOT NULL PRIMARY KEY, state TEXT NOT NULL, changed_at BIGINT NOT NULL, version BIGINT NOT NULL);
		INSERT INTO bare SELECT n, 'ready', 0, 1 FROM generate_series(1, %d) AS n ON CONFLICT DO NOTHING;
		COMMIT`, bareRows))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the table: %w", err), conn.Close(ctx))
	}
	return &Bare{conn: conn}, nil
}

// Update runs one transaction and returns how long it took.
func (b *Bare) Update(ctx context.Context) (time.Duration, error) {
	b.n++
	first := int64(b.n*7919)%bareRows + 1
	second := (first+bareRows/2)%bareRows + 1
	begun := time.Now()
	tx, err := b.conn.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("beginning: %w", err)
	}
	tag, err := tx.Exec(ctx,
		"UPDATE bare SET state = 'claimed', changed_at = $1, version = version + 1 WHERE id IN ($2, $3)",
		begun.UnixMicro(), first, second)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("updating: %w", err), tx.Rollback(ctx))
	}
	if tag.RowsAffected() != 2 {
		return 0, errors.Join(fmt.Errorf("%d rows were changed, not two", tag.RowsAffected()), tx.Rollback(ctx))
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("committing: %w", err)
	}
	return time.Since(begun), nil
}

// Close ends the connection.
func (b *Bare) Close(ctx context.Context) error { return b.conn.Close(ctx) }
