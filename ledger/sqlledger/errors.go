package sqlledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/forewarm/forewarm/ledger"
)

// wrapError says what was being done when err happened, and adds the port's error
// that a caller can decide by. Nil stays nil.
func wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if kind := portError(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%s: %w: %w", doing, kind, err)
	}
	if isStorageFull(err) && !hasStorageFull(err) {
		return fmt.Errorf("%s: %w", doing, &ledger.StorageFullError{Where: "the database", Err: err})
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// portError returns the port's error for what a database says; nil: there is none.
func portError(err error) error {
	switch code := sqlState(err); {
	case isTaken(err):
		return ledger.ErrTaken
	case code == "55P03", code == "57014" && !isGivenUp(err): // a lock, or a statement, took too long
		return ledger.ErrBusy
	case code == "25006", sqliteCode(err) == sqlite3.SQLITE_READONLY:
		return ledger.ErrReadOnly
	case isConnectionLost(err):
		return ledger.ErrUnavailable
	}
	return nil
}

// sqlState returns the code of a PostgreSQL error; empty: it is not one.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// sqliteCode returns the primary code of a SQLite error; 0: it is not one.
func sqliteCode(err error) int {
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code() & 0xff // the rest says which kind
	}
	return 0
}

// isTaken reports whether a unique constraint refused a row.
func isTaken(err error) bool {
	var lite *sqlite.Error
	return sqlState(err) == "23505" || errors.As(err, &lite) &&
		(lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isStorageFull reports whether there is no room to write, or the disk fails.
func isStorageFull(err error) bool {
	code := sqliteCode(err)
	return sqlState(err) == "53100" || code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR
}

// hasStorageFull reports whether err already says that the storage is full.
func hasStorageFull(err error) bool {
	var told *ledger.StorageFullError
	return errors.As(err, &told)
}

// isGivenUp reports whether the caller gave up, which closes the connection.
func isGivenUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isConnectionLost reports whether the connection was lost, or none was to be had,
// while the caller still waited.
func isConnectionLost(err error) bool {
	if isGivenUp(err) {
		return false
	}
	if code := sqlState(err); code != "" {
		switch code {
		case "25P03", "57P01", "57P02", "57P03", "57P05", "53300":
			return true // idle in a transaction, shut down, crashed, starting up, idle, too many connections
		}
		return code[:2] == "08"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn)
}

// isRetryable reports whether the transaction can run again: the database asks for
// it (serialization failure, deadlock, busy), somebody holds a row, or the
// connection was lost before anything could be committed.
func isRetryable(err error) bool {
	if errors.Is(err, ledger.ErrOutcomeUnknown) {
		return false
	}
	state, lite := sqlState(err), sqliteCode(err)
	return state == "40001" || state == "40P01" || lite == sqlite3.SQLITE_BUSY || lite == sqlite3.SQLITE_LOCKED ||
		errors.Is(err, ledger.ErrBusy) || errors.Is(err, ledger.ErrUnavailable)
}

// isExpected reports whether err needs no line in the log, because nobody is at
// fault: whoever loses a race tries again, or hears of it.
func isExpected(err error) bool {
	for _, race := range []error{ledger.ErrStale, ledger.ErrConflict, ledger.ErrTaken, ledger.ErrFenced} {
		if errors.Is(err, race) {
			return true
		}
	}
	return isTaken(err) || isRetryable(err) || isGivenUp(err)
}
