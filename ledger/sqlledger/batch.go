package sqlledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forewarm/forewarm/ledger"
)

// statement is one statement of a batch.
type statement struct {
	doing   string
	text    string
	args    [][]byte // in binary format; nil: there are none, and it is not prepared
	unmet   error    // the error when the statement's own condition does not hold: see condition
	tag     string   // the command tag that the server must answer; empty: any
	receive func(values [][]byte) error
}

// condition makes a statement fail unless it wrote as many rows as its last
// parameter says. In a batch only the server can stop what follows, COMMIT
// included, so the failure is a division by zero.
const condition = "SELECT 1 / (count(*) = %s)::int FROM written"

const divisionByZero = "22012"

// binaryFormat is the format of all parameters and results.
var binaryFormat = []int16{pgx.BinaryFormatCode}

// runBatch sends all statements at once and reads the answers: one round trip, and
// one more for each text that the connection has not prepared yet. After the first
// statement that fails, the server runs none of the rest.
func runBatch(ctx context.Context, conn *pgx.Conn, list []statement) error {
	var batch pgconn.Batch
	for _, s := range list {
		if s.args == nil {
			batch.ExecParams(s.text, nil, nil, nil, binaryFormat)
			continue
		}
		prepared, err := conn.Prepare(ctx, s.text, s.text)
		if err != nil {
			return wrapError(s.doing, err)
		}
		batch.ExecStatement(prepared, s.args, binaryFormat, binaryFormat)
	}
	results := conn.PgConn().ExecBatch(ctx, &batch)
	for i, s := range list {
		if err := s.readResult(results); err != nil {
			return errors.Join(wrapError(s.doing, err), closeFailedBatch(results, err), commitDoubt(list[i:], err))
		}
	}
	if err := results.Close(); err != nil {
		return errors.Join(wrapError("ending a batch", err), commitDoubt(list, err))
	}
	return nil
}

// commitDoubt returns ErrOutcomeUnknown when COMMIT was sent with the statement
// that failed and the failure is not the server's refusal: the server may have
// committed.
func commitDoubt(rest []statement, err error) error {
	if len(rest) == 0 || rest[len(rest)-1].tag != commitTransaction.tag {
		return nil
	}
	var pg *pgconn.PgError
	refused := errors.As(err, &pg) && (len(rest) > 1 || pg.Severity == "ERROR")
	unmet := len(rest) > 1 && rest[0].unmet != nil && errors.Is(err, rest[0].unmet)
	if refused || unmet || errors.Is(err, errWrongAnswer) {
		return nil
	}
	return ledger.ErrOutcomeUnknown
}

// errWrongAnswer is a complete answer, but not the expected one.
var errWrongAnswer = errors.New("the server answered otherwise")

// closeFailedBatch reads a failed batch to its end, and returns an error only if it
// differs from the known one.
func closeFailedBatch(results *pgconn.MultiResultReader, known error) error {
	err := results.Close()
	if err == nil || errors.Is(known, err) {
		return nil
	}
	var again *pgconn.PgError
	if errors.As(err, &again) {
		return nil // a batch has one error, the known one
	}
	return err
}

// readResult reads what the server answers to one statement.
func (s statement) readResult(results *pgconn.MultiResultReader) error {
	if !results.NextResult() {
		if err := results.Close(); err != nil {
			return s.interpretError(err)
		}
		return errors.New("the server answered fewer statements than it was sent")
	}
	var failed error
	rows := results.ResultReader()
	for rows.NextRow() {
		if s.receive != nil && failed == nil {
			failed = s.receive(rows.Values())
		}
	}
	tag, err := rows.Close()
	switch {
	case err != nil:
		return s.interpretError(err)
	case s.tag != "" && tag.String() != s.tag:
		return fmt.Errorf("%w: %q", errWrongAnswer, tag.String())
	default:
		return failed
	}
}

// interpretError returns what a server's error says about the change.
func (s statement) interpretError(err error) error {
	var pg *pgconn.PgError
	if s.unmet != nil && errors.As(err, &pg) && pg.Code == divisionByZero {
		return s.unmet
	}
	return err
}
