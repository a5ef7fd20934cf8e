package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// How often, and after what pause, a transaction is tried again.
const (
	maxTries = 10
	minPause = 5 * time.Millisecond
	maxPause = 50 * time.Millisecond
	// A database that restarts is away for a few seconds.
	awayPause = time.Second
)

// tx reads and writes within one transaction.
type tx struct {
	reader
	held    map[string]bool     // ids of organizations and pools, on PostgreSQL
	written map[string][]string // by pool: ids of what was saved since its revision was set
	nested  int                 // depth of Nested
	over    bool                // committed, on SQLite
	tasks   bool                // some were saved
	urgent  bool                // somebody waits for it

	assumptions *assumptions // checked before the first write; nil: there are none, or they were
}

var _ ledger.Tx = (*tx)(nil)

// InTx runs fn in one transaction. It tries again when the database asks for it,
// when somebody holds a row, and when the connection was lost before anything could
// be committed.
func (s *Store) InTx(ctx context.Context, fn func(tx ledger.Tx) error) error {
	var err error
	for try := range maxTries {
		err = addStoragePlace(s.tryOnce(ctx, fn), s.place)
		if !isRetryable(err) || ledger.IsHurried(ctx) && errors.Is(err, ledger.ErrBusy) {
			return err
		}
		if err := s.waitBeforeRetry(ctx, try, err); err != nil {
			return err
		}
	}
	if errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrBusy) {
		return err
	}
	return fmt.Errorf("trying a transaction %d times: %w: %w", maxTries, ledger.ErrBusy, err)
}

// addStoragePlace adds to an error of full storage where that storage is.
func addStoragePlace(err error, place string) error {
	var full *ledger.StorageFullError
	if errors.As(err, &full) {
		full.Where = place
	}
	return err
}

func (s *Store) tryOnce(ctx context.Context, fn func(tx ledger.Tx) error) error {
	t, err := s.beginTx(ctx)
	if err != nil {
		return err
	}
	defer t.close() // also when fn panics
	if err := t.joinFailure(fn(t)); err != nil {
		return err
	}
	return t.commit()
}

// beginTx begins a transaction; on PostgreSQL it only prepares one, which begins
// with its first statement.
func (s *Store) beginTx(ctx context.Context) (*tx, error) {
	t := &tx{reader: newReader(&connection{store: s})}
	if s.dialect.batches {
		var err error
		t.session, t.db, err = s.newSession(ctx)
		return t, err
	}
	t.db = s.write.WithContext(ctx).Begin()
	return t, wrapError("beginning a transaction", t.db.Error)
}

// commit commits the transaction, once.
func (t *tx) commit() error {
	if t.session != nil {
		return (&batchWriter{t: t}).flushChanges(true)
	}
	if t.over {
		return nil
	}
	t.over = true
	if err := t.db.Commit().Error; err != nil {
		return t.failWith(wrapError("committing a transaction", err))
	}
	if t.tasks {
		t.store.tasks.wakeAll()
	}
	if t.urgent {
		t.store.urgent.signal.wakeAll()
	}
	return nil
}

// close rolls back what was not committed.
func (t *tx) close() {
	if t.session != nil {
		t.session.close(t.db.Statement.Context)
		return
	}
	t.db.Rollback() // does nothing after Commit
}

// Nested runs fn in t. When fn fails after it wrote something, so does t.
func (t *tx) Nested(fn func(tx ledger.Tx) error) error {
	t.nested++
	defer func() { t.nested-- }()
	before := t.writes
	err := fn(t)
	if err != nil && t.writes != before {
		return t.failWith(err)
	}
	return err
}

// Snapshot reads over another connection, on PostgreSQL: there each statement of a
// transaction has a snapshot of its own. On SQLite nobody else writes meanwhile.
func (t *tx) Snapshot(fn func(r ledger.Reader) error) error {
	if t.session == nil {
		return fn(t)
	}
	return t.store.Read(t.db.Statement.Context, fn)
}

// waitBeforeRetry waits a random moment, so that transactions that collided do not
// collide again. It waits longer and longer while the database is away.
func (s *Store) waitBeforeRetry(ctx context.Context, try int, failed error) error {
	s.mu.Lock()
	d := minPause + time.Duration(s.rand.Int64N(int64(maxPause-minPause)))
	s.mu.Unlock()
	if errors.Is(failed, ledger.ErrUnavailable) {
		d = min(d<<try, awayPause)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), failed)
	case <-timer.C:
		return nil
	}
}
