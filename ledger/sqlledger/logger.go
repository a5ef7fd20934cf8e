package sqlledger

import (
	"context"
	"log/slog"
	"strings"
	"time"

	gormlogger "gorm.io/gorm/logger"

	"github.com/forewarm/forewarm/ledger"
)

// logger tells slog of statements that failed, with placeholders instead of values:
// a value may be the hash of a key or the name of a customer.
type logger struct{ to *slog.Logger }

func newLogger(to *slog.Logger) gormlogger.Interface {
	if to == nil {
		return gormlogger.Discard
	}
	return logger{to}
}

func (l logger) LogMode(gormlogger.LogLevel) gormlogger.Interface { return l }
func (l logger) Info(context.Context, string, ...any)             {}
func (l logger) Warn(context.Context, string, ...any)             {}

func (l logger) Error(ctx context.Context, message string, _ ...any) {
	l.to.ErrorContext(ctx, "database layer failed", "message", message)
}

// ParamsFilter keeps values out of the statement that Trace is given.
func (l logger) ParamsFilter(_ context.Context, statement string, _ ...any) (string, []any) {
	return statement, nil
}

func (l logger) Trace(ctx context.Context, _ time.Time, fc func() (string, int64), err error) {
	if err == nil || isExpected(err) {
		return
	}
	statement, _ := fc()
	l.to.Log(ctx, levelOf(ctx), "statement failed", "statement", clipStatement(statement), "error", err)
}

// levelOf is how much a statement that failed matters. Where its caller gave up, the connection is closed, and what the
// caller still asks of it fails in other words than that.
func levelOf(ctx context.Context) slog.Level {
	if ctx.Err() != nil {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// mostStatement bounds what is logged of a statement, which is as long as what somebody sent.
const mostStatement = 2000

func clipStatement(statement string) string {
	if len(statement) > 4*mostStatement {
		statement = statement[:4*mostStatement]
	}
	return ledger.ClipText(strings.ToValidUTF8(strings.Join(strings.Fields(statement), " "), "?"), mostStatement)
}
