//go:build services

package sqlledger_test

import (
	"testing"

	"github.com/forewarm/forewarm/ledger/sqlledger"
)

func benchedServices() map[string]func(tb testing.TB) *sqlledger.Store {
	return map[string]func(tb testing.TB) *sqlledger.Store{"postgres": openPostgres}
}
