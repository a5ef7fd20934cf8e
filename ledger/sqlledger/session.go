package sqlledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// session is a transaction on a PostgreSQL connection of its own. It begins with
// its first statement; when that is a batch, in the same round trip. gorm's
// statements go over the same connection.
type session struct {
	conn  *sql.Conn
	begun bool
	over  bool // committed: a statement after it would run on its own
	away  bool // the server is a standby: another connection may reach the primary
}

var (
	beginTransaction = statement{doing: "beginning a transaction", text: "BEGIN ISOLATION LEVEL READ COMMITTED",
		args: [][]byte{}, tag: "BEGIN"}
	commitTransaction = statement{doing: "committing a transaction", text: "COMMIT", args: [][]byte{}, tag: "COMMIT"}
)

// rollbackPatience is how long the server may take to answer a ROLLBACK. After that
// the connection is given up, which ends the transaction too.
const rollbackPatience = 5 * time.Second

// newSession takes a connection from the pool, and returns it with a gorm session
// over it.
func (s *Store) newSession(ctx context.Context) (*session, *gorm.DB, error) {
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return nil, nil, wrapError("connecting to the database", err)
	}
	db := s.write.Session(&gorm.Session{NewDB: true, Context: ctx})
	db.Statement.ConnPool = conn
	return &session{conn: conn}, db, nil
}

// runStatements sends statements in one batch, beginning with BEGIN if nothing was
// sent before.
func (c *session) runStatements(ctx context.Context, list ...statement) error {
	if c.over {
		return sql.ErrTxDone
	}
	if !c.begun {
		list = append([]statement{beginTransaction}, list...)
		c.begun = true
	}
	err := c.conn.Raw(func(driverConn any) error {
		inner, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the connection is a %T", driverConn)
		}
		return runBatch(ctx, inner.Conn(), list)
	})
	c.away = c.away || errors.Is(err, ledger.ErrReadOnly)
	return err
}

// ensureBegun begins the transaction if no batch has begun it.
func (c *session) ensureBegun(ctx context.Context) error {
	if c.begun && !c.over {
		return nil
	}
	return c.runStatements(ctx)
}

// close gives the connection back. It first rolls back a transaction that is still
// open.
func (c *session) close(ctx context.Context) {
	if c.begun && !c.over {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
		defer cancel()
		if _, err := c.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // gives the connection up
		}
	}
	if c.away {
		_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = c.conn.Close() // it fails only when the connection was given up above
}
