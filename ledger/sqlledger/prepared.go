package sqlledger

import (
	"context"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// SQLite parses a statement each time it gets its text, which was measured to cost
// as much as running it; and gorm's prepared statements end with the transaction
// that they were prepared in. So each connection keeps the statements that it has
// run: there are few texts, and all are constant.

// maxPrepared bounds the statements that one connection keeps. A list with another
// number of placeholders is another text, so there may be a few hundred.
const maxPrepared = 512

// preparingConnector opens connections that keep their statements.
type preparingConnector struct{ name string }

// Connect opens a connection.
func (p preparingConnector) Connect(context.Context) (driver.Conn, error) {
	c, err := p.Driver().Open(p.name)
	if err != nil {
		return nil, err
	}
	inner, ok := c.(sqliteConn)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks an interface that this program needs"), c.Close())
	}
	return &preparedConn{sqliteConn: inner, kept: map[string]*preparedStmt{}}, nil
}

// Driver returns the driver below.
func (preparingConnector) Driver() driver.Driver { return &sqlite.Driver{} }

// sqliteConn is everything that database/sql may ask of a connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	copier
}

// preparedConn is one connection; database/sql never uses one concurrently.
type preparedConn struct {
	sqliteConn
	kept map[string]*preparedStmt
}

// preparedStmt is a kept statement. It cannot run again while its rows are being
// read.
type preparedStmt struct {
	driver.Stmt
	busy bool
}

// keptStatement returns the kept statement of a text, or nil when the text must be
// run as it is: the statement's rows are still being read, or it cannot be
// prepared.
func (c *preparedConn) keptStatement(ctx context.Context, query string) *preparedStmt {
	if s, ok := c.kept[query]; ok {
		if s.busy {
			return nil
		}
		return s
	}
	if len(c.kept) >= maxPrepared {
		return nil
	}
	inner, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil // run as text it fails in the same way, and the caller sees it
	}
	s := &preparedStmt{Stmt: inner}
	c.kept[query] = s
	return s
}

// ExecContext runs a statement without rows.
func (c *preparedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if s := c.keptStatement(ctx, query); s != nil {
		if run, ok := s.Stmt.(driver.StmtExecContext); ok {
			return run.ExecContext(ctx, args)
		}
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext runs a statement with rows.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s := c.keptStatement(ctx, query)
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	run, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := run.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &preparedRows{Rows: rows, stmt: s}, nil
}

// Close closes the statements, then the connection.
func (c *preparedConn) Close() error {
	var err error
	for _, s := range c.kept {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.sqliteConn.Close())
}

// preparedRows frees its statement when it is closed.
type preparedRows struct {
	driver.Rows
	stmt *preparedStmt
}

// Close ends the reading.
func (r *preparedRows) Close() error {
	err := r.Rows.Close()
	r.stmt.busy = false
	return err
}
