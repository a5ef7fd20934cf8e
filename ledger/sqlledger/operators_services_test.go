//go:build services

package sqlledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// TestOperatorsCannotEndEachOther: in two processes operators end each other's keys
// at the same moment. One comes second, and sees that it would end the last key.
func TestOperatorsCannotEndEachOther(t *testing.T) {
	t.Parallel()
	store := openPostgres(t)
	here, there := verbs.New(store, ids.UUID{}, ledger.Config{}), verbs.New(store, ids.UUID{}, ledger.Config{})
	made, err := here.Bootstrap(t.Context(), "acme", quota.Limits{},
		ledger.Key{ID: "op-0", Name: "first", Hash: []byte{1}})
	require.NoError(t, err)
	require.True(t, made)
	left := "op-0"
	for round := range 20 {
		other := fmt.Sprintf("op-%d", round+1)
		_, err := here.RecoverOperator(t.Context(), ledger.Key{ID: other, Name: "another", Hash: []byte{1}})
		require.NoError(t, err)
		a, b := actorOf(t, here, left), actorOf(t, here, other)
		var wait sync.WaitGroup
		var errA, errB error
		wait.Go(func() { _, errA = here.RevokeKey(context.Background(), a, b.KeyID) })
		wait.Go(func() { _, errB = there.RevokeKey(context.Background(), b, a.KeyID) })
		wait.Wait()
		if errA == nil {
			require.Error(t, errB)
			left = a.KeyID
		} else {
			require.NoError(t, errB, "%v", errA)
			left = b.KeyID
		}
		require.Equal(t, ledger.Operator, actorOf(t, here, left).Role)
	}
}

func actorOf(t *testing.T, l *verbs.Ledger, keyID string) ledger.Actor {
	t.Helper()
	c, err := l.Authenticate(t.Context(), keyID)
	require.NoError(t, err)
	return c.Actor()
}
