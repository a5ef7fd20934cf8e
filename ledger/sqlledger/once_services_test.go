//go:build services

package sqlledger_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// TestTwinsGetOneAnswer: two requests with one idempotency key run at the same time
// in two processes. Neither sees the other, and one commits first. The other fails,
// since the key is taken or what it wanted is gone: either way it gets the stored
// answer.
func TestTwinsGetOneAnswer(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"it takes the key too": nil,
		"it finds nothing left": errors.New("sold out")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openPostgres(t)
			here, there := verbs.New(store, &ids.Sequence{}, ledger.Config{}),
				verbs.New(store, &ids.Sequence{}, ledger.Config{})
			actor, same := ledger.Actor{OrganizationID: "org_1"},
				ledger.Once{Route: "r", Key: "k", Hash: []byte("body")}
			firstIsIn, secondIsIn, firstIsOver := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				_, _, _, err := there.Once(context.Background(), actor, same,
					func(context.Context, *verbs.Ledger) (int, []byte, error) {
						close(firstIsIn)
						<-secondIsIn
						return 201, []byte("first"), nil
					})
				firstIsOver <- err
			}()
			<-firstIsIn
			status, body, replayed, err := here.Once(t.Context(), actor, same,
				func(context.Context, *verbs.Ledger) (int, []byte, error) {
					close(secondIsIn)
					if err := <-firstIsOver; err != nil {
						return 0, nil, err
					}
					return 201, []byte("second"), failure
				})
			require.NoError(t, err)
			require.True(t, replayed)
			require.Equal(t, 201, status)
			require.Equal(t, "first", string(body))
		})
	}
}
