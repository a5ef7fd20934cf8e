package sqlledger

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// How much room a heartbeat takes, so that a disk with room only for small changes
// counts as full; and how long the heartbeats of a process that is gone are kept.
const (
	heartbeatRoom = 12 << 10 // bytes, a third more as text
	heartbeatLife = 24 * time.Hour
)

// CheckWrites writes a new heartbeat beside the old one and then removes the old
// one, so that each call needs fresh room.
func (s *Store) CheckWrites(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	filling := make([]byte, heartbeatRoom)
	_, _ = rand.Read(filling) // never fails; zeros would be compressed
	room := base64.StdEncoding.EncodeToString(filling)
	beat := s.beat.Add(1)
	return s.inDirectTx(ctx, func(t *tx) error {
		now := t.Now()
		if _, err := t.execStatement("writing a heartbeat",
			"INSERT INTO heartbeats (process, beat, at, room) VALUES (?, ?, ?, ?)",
			s.process, beat, toMicros(now), room); err != nil {
			return err
		}
		_, err := t.execStatement("removing old heartbeats",
			"DELETE FROM heartbeats WHERE (process = ? AND beat < ?) OR at < ?",
			s.process, beat, toMicros(now.Add(-heartbeatLife)))
		return err
	})
}

// checkSchema compares the newest migration in the database with this program's.
func (s *Store) checkSchema(ctx context.Context) error {
	want, err := s.newest()
	if err != nil {
		return err
	}
	var have int64
	err = s.read.WithContext(ctx).Raw("SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version").Scan(&have).Error
	if err != nil {
		return addStoragePlace(wrapError("reading the schema's version", err), s.place)
	}
	if have != want {
		return &ledger.SchemaError{Have: have, Want: want}
	}
	return nil
}

// newestMigration returns the number of the newest migration that this program has.
func (s *Store) newestMigration() (int64, error) {
	provider, err := s.migrationProvider(s.writer)
	if err != nil {
		return 0, fmt.Errorf("reading the migrations: %w", err)
	}
	sources := provider.ListSources()
	return sources[len(sources)-1].Version, nil
}
