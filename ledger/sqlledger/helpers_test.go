package sqlledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func saveChange(t *testing.T, s ledger.Store, c ledger.Change) error {
	t.Helper()
	return s.InTx(t.Context(), func(tx ledger.Tx) error { return tx.Save(c) })
}

func listPools(t *testing.T, s ledger.Store) []ledger.Pool {
	t.Helper()
	var list []ledger.Pool
	require.NoError(t, s.Read(t.Context(), func(r ledger.Reader) (err error) {
		list, err = r.Pools(ledger.Page{})
		return err
	}))
	return list
}

func listEvents(t *testing.T, s ledger.Store) []ledger.Event {
	t.Helper()
	var list []ledger.Event
	require.NoError(t, s.Read(t.Context(), func(r ledger.Reader) (err error) {
		list, err = r.Events(ledger.Scope{All: true}, ledger.EventFilter{}, 0)
		return err
	}))
	return list
}
