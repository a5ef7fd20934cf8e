package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// Bounds of trying a transaction again.
const (
	maxTries = 10
	minPause = 5 * time.Millisecond
	maxPause = 50 * time.Millisecond
	// A database that restarts is away for a few seconds.
	awayPause = time.Second
)

// reader reads within one transaction. It is not safe for concurrent use.
type reader struct {
	store   *Store
	db      *gorm.DB
	session *session // of a transaction on PostgreSQL
	now     time.Time
	queried bool  // a statement was run, so that the snapshot is taken
	writes  int   // statements that may have changed something
	failure error // why the transaction must not be committed
}

// tx reads and writes within one transaction.
type tx struct {
	reader
	held   map[string]bool // ids of organizations and pools, on PostgreSQL
	nested int             // how many Nested are inside each other
	over   bool            // it was committed, on SQLite

	assumptions []statement // what the first write checks before; see Assume
}

var _ ledger.Tx = (*tx)(nil)

// InTx runs fn in one transaction, trying again when the database asks for it, a
// row is held, or the connection was lost before anything could be committed.
func (s *Store) InTx(ctx context.Context, fn func(tx ledger.Tx) error) error {
	var err error
	for try := range maxTries {
		if err = s.addStoragePlace(s.tryOnce(ctx, fn)); !isRetryable(err) || ledger.IsHurried(ctx) && errors.Is(err, ledger.ErrBusy) {
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

// addStoragePlace says where there is no room.
func (s *Store) addStoragePlace(err error) error {
	var full *ledger.StorageFullError
	if errors.As(err, &full) {
		full.Where = s.place
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

// beginTx begins a transaction, or on PostgreSQL makes ready for it.
func (s *Store) beginTx(ctx context.Context) (*tx, error) {
	t := &tx{reader: reader{store: s}}
	if s.dialect.batches {
		var err error
		t.session, t.db, err = s.newSession(ctx)
		return t, err
	}
	t.db = s.write.WithContext(ctx).Begin()
	return t, wrapError("beginning a transaction", t.db.Error)
}

// commit ends the transaction, once.
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

// sendBatch sends statements to PostgreSQL in one round trip.
func (r *reader) sendBatch(list []statement) error {
	ctx := r.db.Statement.Context
	err := r.session.runStatements(ctx, list...)
	if err != nil && r.store.logger != nil && !isExpected(err) {
		r.store.logger.ErrorContext(ctx, "batch of statements failed", "error", err)
	}
	return err
}

// Nested runs fn in t, and spoils t when fn fails after it wrote something.
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

// failWith makes sure that the transaction is not committed, and returns err. A
// failed statement ends a transaction on PostgreSQL; so it does on SQLite.
func (r *reader) failWith(err error) error {
	if r.failure == nil {
		r.failure = err
	}
	return err
}

// waitBeforeRetry waits a moment that differs between those who collided, and that grows
// while the database is away.
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

// Read runs fn on one snapshot.
func (s *Store) Read(ctx context.Context, fn func(r ledger.Reader) error) error {
	options := s.dialect.snapshot
	db := s.read.WithContext(ctx).Begin(&options)
	if db.Error != nil {
		return wrapError("beginning a snapshot", db.Error)
	}
	defer db.Rollback()
	r := &reader{store: s, db: db}
	return r.joinFailure(fn(r))
}

// joinFailure adds to fn's error what spoiled the transaction, if fn kept it back.
func (r *reader) joinFailure(err error) error {
	if r.failure != nil && !errors.Is(err, r.failure) {
		return errors.Join(err, r.failure)
	}
	return err
}

// newQuery starts a statement that inherits no condition from another.
func (r *reader) newQuery() *gorm.DB {
	r.queried = true
	db := r.db.Session(&gorm.Session{NewDB: true})
	if r.session != nil {
		_ = db.AddError(r.session.ensureBegun(db.Statement.Context)) // which the statement then fails with
	}
	return db
}

// Now returns the database's time, read at the first call.
func (r *reader) Now() time.Time {
	if !r.now.IsZero() {
		return r.now
	}
	if r.store.dialect.now == "" {
		r.now = toTime(toMicros(r.store.clock.Now()))
		return r.now
	}
	var now sql.NullInt64
	if err := r.newQuery().Raw(r.store.dialect.now).Scan(&now).Error; err != nil {
		_ = r.failWith(wrapError("asking the database for the time", err))
	}
	r.now = toTime(now.Int64)
	return r.now
}

// execStatement runs one statement and returns how many rows it changed.
func (t *tx) execStatement(doing, statement string, args ...any) (int64, error) {
	t.writes++
	result := t.newQuery().Exec(statement, args...)
	if result.Error != nil {
		return 0, t.failWith(wrapError(doing, result.Error))
	}
	return result.RowsAffected, nil
}
