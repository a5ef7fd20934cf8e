package sqlledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/forewarm/forewarm/ledger"
)

// wrap says what was being done when err happened, and turns a name that is
// taken into the port's error. Nil stays nil.
func wrap(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case taken(err):
		return fmt.Errorf("%s: %w: %w", doing, ledger.ErrTaken, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// taken reports whether a unique constraint refused a row.
func taken(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505"
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) &&
		(lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// retryable reports whether the database asks for the transaction to be run
// again: serialization failure, deadlock, busy.
func retryable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return false
	}
	primary := lite.Code() & 0xff // the rest says which kind of busy
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// expected reports whether err is nobody's fault, so that no log needs it.
func expected(err error) bool {
	return taken(err) || retryable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
