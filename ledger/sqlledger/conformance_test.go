package sqlledger_test

import (
	"testing"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/ledgertest"
)

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t testing.TB) string{
		"memory": func(testing.TB) string { return "sqlite://:memory:" },
		"file":   inFile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledgertest.Exercise(t, func(t *testing.T) ledger.Store { return openSQLite(t, url(t)) })
		})
	}
}
