package sqlledger

import (
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// connection is what the readers of one transaction share: its way to the database,
// the time it has read, and why it failed. It is not safe for concurrent use.
type connection struct {
	store   *Store
	db      *gorm.DB
	session *session // of a transaction on PostgreSQL
	now     time.Time
	// isSnapshot: nothing is written here, and all statements see one moment.
	isSnapshot bool
	queried    bool  // a statement has run, so the snapshot is taken
	writes     int   // statements that may have changed something
	failure    error // why the transaction must not be committed
}

// newQuery starts a query that inherits no condition from another.
func (c *connection) newQuery() *gorm.DB {
	c.queried = true
	db := c.db.Session(&gorm.Session{NewDB: true})
	if c.session != nil {
		_ = db.AddError(c.session.ensureBegun(db.Statement.Context)) // which the statement then fails with
	}
	return db
}

// ownRows starts a query of the rows that belong to organizations, narrowed to
// those that s may see.
func (c *connection) ownRows(s ledger.Scope) *gorm.DB {
	return inScope(c.newQuery(), s, tenantColumn)
}

// sendBatch sends statements to PostgreSQL in one round trip.
func (c *connection) sendBatch(list []statement) error {
	ctx := c.db.Statement.Context
	err := c.session.runStatements(ctx, list...)
	if err != nil && c.store.logger != nil && !isExpected(err) {
		c.store.logger.Log(ctx, levelOf(ctx), "batch of statements failed", "error", err)
	}
	return err
}

// readTogether runs several queries. Within a transaction on PostgreSQL that is one
// round trip. Elsewhere there is nobody to wait for, or no hurry, and one query
// follows the other.
func (c *connection) readTogether(list ...rowQuery) error {
	if c.session == nil {
		for _, one := range list {
			if err := c.queryDirectly(one); err != nil {
				return wrapError(one.doing, err)
			}
		}
		return nil
	}
	batch := make([]statement, len(list))
	for i, one := range list {
		batch[i] = one.toStatement()
	}
	if err := c.sendBatch(batch); err != nil {
		return c.failWith(err)
	}
	return nil
}

// queryDirectly runs a query past gorm.
func (c *connection) queryDirectly(q rowQuery) (err error) {
	c.queried = true
	text := q.text
	if c.store.dialect.batches {
		text = numberPlaceholders(text)
	}
	ctx := c.db.Statement.Context
	defer func() {
		if err != nil {
			c.db.Logger.Trace(ctx, time.Time{}, func() (string, int64) { return q.text, 0 }, err)
		}
	}()
	rows, err := c.db.Statement.ConnPool.QueryContext(ctx, text, q.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := q.scan(rows); err != nil {
		return err
	}
	return rows.Err()
}

// execStatement runs one statement and returns how many rows it changed.
func (c *connection) execStatement(doing, statement string, args ...any) (int64, error) {
	c.writes++
	if c.session == nil {
		return c.execDirectly(doing, statement, args)
	}
	result := c.newQuery().Exec(statement, args...)
	if result.Error != nil {
		return 0, c.failWith(wrapError(doing, result.Error))
	}
	return result.RowsAffected, nil
}

// execDirectly is execStatement on SQLite, which takes the placeholders as they are:
// gorm would take the text apart and put it together again for each row.
func (c *connection) execDirectly(doing, text string, args []any) (n int64, err error) {
	c.queried = true
	ctx := c.db.Statement.Context
	result, err := c.db.Statement.ConnPool.ExecContext(ctx, text, args...)
	if err == nil {
		n, err = result.RowsAffected()
	}
	if err != nil {
		c.db.Logger.Trace(ctx, time.Time{}, func() (string, int64) { return text, 0 }, err)
		return 0, c.failWith(wrapError(doing, err))
	}
	return n, nil
}

// failWith keeps the transaction from being committed, and returns err. On
// PostgreSQL a failed statement ends the transaction; this makes SQLite do the
// same.
func (c *connection) failWith(err error) error {
	if c.failure == nil {
		c.failure = err
	}
	return err
}

// joinFailure adds to err the reason why the transaction failed, unless err says it
// already.
func (c *connection) joinFailure(err error) error {
	if c.failure != nil && !errors.Is(err, c.failure) {
		return errors.Join(err, c.failure)
	}
	return err
}

// Now returns the database's time, which is read at the first call.
func (c *connection) Now() time.Time {
	if !c.now.IsZero() {
		return c.now
	}
	if c.store.dialect.now == "" {
		c.now = toTime(toMicros(c.store.clock.Now()))
		return c.now
	}
	var now sql.NullInt64
	if err := c.newQuery().Raw(c.store.dialect.now).Scan(&now).Error; err != nil {
		_ = c.failWith(wrapError("asking the database for the time", err))
	}
	c.now = toTime(now.Int64)
	return c.now
}

// monthStart is the first instant of this UTC month, in microseconds.
func (c *connection) monthStart() int64 {
	now := c.Now()
	return toMicros(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
}
