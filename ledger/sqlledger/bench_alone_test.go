//go:build !services

package sqlledger_test

import (
	"testing"

	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// benchedServices is empty without servers.
func benchedServices() map[string]func(tb testing.TB) *sqlledger.Store { return nil }
