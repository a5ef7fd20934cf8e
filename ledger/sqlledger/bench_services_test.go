//go:build services

package sqlledger_test

import (
	"testing"

	"github.com/forewarm/forewarm/ledger/sqlledger"
)

func init() {
	benched["postgres"] = func(tb testing.TB) *sqlledger.Store { return openPostgres(tb) }
}
