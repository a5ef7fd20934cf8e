package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

var errGivenUp = errors.New("given up")

// TestWhatIsRememberedIsWhatIsStored changes pools in transactions that may be
// given up, and compares what verbs see with what plain lists say.
func TestWhatIsRememberedIsWhatIsStored(t *testing.T) {
	t.Parallel()
	store := openSQLite(t, "sqlite://:memory:")
	require.NoError(t, save(t, store, ledger.Change{Organizations: []ledger.Organization{{ID: "org_1", Name: "a"}}}))
	for run := range 20 {
		h := newHistory(t, store, uint64(run))
		for range 8 {
			err := store.InTx(t.Context(), func(_ context.Context, tx ledger.Tx) error {
				for range 1 + h.rng.IntN(3) {
					require.NoError(t, tx.Save(h.change(listed(t, tx, h.pool))))
					if h.rng.IntN(2) == 0 {
						h.look(tx.LockPool, tx)
					}
				}
				return []error{nil, errGivenUp}[h.rng.IntN(2)]
			})
			require.True(t, err == nil || errors.Is(err, errGivenUp), "%v", err)
			if h.rng.IntN(2) == 0 {
				require.NoError(t, store.Read(t.Context(), func(r ledger.Reader) error {
					h.look(r.PoolState, r)
					return nil
				}))
			}
		}
	}
}

// TestAVersionThatWasGivenUpIsForgotten: the same version comes again with
// another content.
func TestAVersionThatWasGivenUpIsForgotten(t *testing.T) {
	t.Parallel()
	store := openSQLite(t, "sqlite://:memory:")
	require.NoError(t, save(t, store, ledger.Change{Organizations: []ledger.Organization{{ID: "org_1", Name: "a"}}}))
	h := newHistory(t, store, 1)
	first := node.New("nod_1", h.pool, 0, 1, start)
	require.NoError(t, save(t, store, ledger.Change{Nodes: []node.Node{first}}))
	first.Version, first.Address = 1, "of the version that is given up"
	require.ErrorIs(t, store.InTx(t.Context(), func(_ context.Context, tx ledger.Tx) error {
		require.NoError(t, tx.Save(ledger.Change{Nodes: []node.Node{first}}))
		h.look(tx.LockPool, tx)
		return errGivenUp
	}), errGivenUp)
	first.Address = "of the version that stays"
	require.NoError(t, save(t, store, ledger.Change{Nodes: []node.Node{first}}))
	require.NoError(t, store.Read(t.Context(), func(r ledger.Reader) error {
		h.look(r.PoolState, r)
		return nil
	}))
}

// history makes changes to one pool.
type history struct {
	*testing.T
	rng  *rand.Rand
	pool string
	made int
}

func newHistory(t *testing.T, store ledger.Store, seed uint64) *history {
	t.Helper()
	h := &history{T: t, rng: rand.New(rand.NewPCG(seed, 0)), pool: fmt.Sprintf("pol_%d", seed)}
	create := ledger.Pool{Pool: gpu.Pool{ID: h.pool, Name: h.pool, PerNode: 8}}
	require.NoError(t, save(t, store, ledger.Change{Pools: []ledger.Pool{create}}))
	return h
}

// look compares what a verb sees with what lists say.
func (h *history) look(see func(id string) (ledger.PoolState, error), r ledger.Reader) {
	h.Helper()
	state, err := see(h.pool)
	require.NoError(h, err)
	require.Equal(h, listed(h.T, r, h.pool), state)
}

func (h *history) id() string {
	h.made++
	return fmt.Sprintf("%s_%d", h.pool, h.made)
}

// change adds a row, or moves one that is there to its next state.
func (h *history) change(state ledger.PoolState) (c ledger.Change) {
	at := start.Add(time.Duration(1+h.rng.IntN(1000)) * time.Second)
	switch what := h.rng.IntN(4); {
	case what == 0 && len(state.Nodes) > 0:
		n, err := state.Nodes[0].Apply(node.Provision, "test", at)
		if err != nil {
			n, err = n.Apply(node.Refuse, "test", at)
		}
		require.NoError(h, err)
		n.Devices = append(n.Devices, gpu.Device{UUID: h.id()})
		c.Nodes = append(c.Nodes, n)
	case what == 1 && len(state.Reservations) > 0:
		r, err := state.Reservations[0].Apply(reservation.Warm, "test", at)
		if err != nil {
			r, err = r.Apply(reservation.Cancel, "test", at)
		}
		require.NoError(h, err)
		c.Reservations = append(c.Reservations, r)
	case what == 2:
		h.made++
		c.Nodes = append(c.Nodes, node.New(h.id(), h.pool, h.made, 1, at))
	default:
		r, err := reservation.New(reservation.Reservation{
			ID: h.id(), OrganizationID: "org_1", PoolID: h.pool, Class: reservation.Guaranteed, Source: reservation.FromAgent,
			Shape: gpu.Shape{Nodes: 1, PerNode: 1}, Slots: []int{1}, Window: calendar.Interval{Start: at, End: at.Add(time.Hour)},
		}, reservation.Booked, at)
		require.NoError(h, err)
		c.Reservations = append(c.Reservations, r)
	}
	return c
}

// listed puts a pool's state together from plain lists.
func listed(t *testing.T, r ledger.Reader, pool string) (s ledger.PoolState) {
	var err error
	s.Pool, err = r.Pool(pool)
	require.NoError(t, err)
	s.Nodes, err = r.Nodes(ledger.NodeFilter{PoolID: pool, Live: true}, ledger.Page{Limit: 500})
	require.NoError(t, err)
	filter := ledger.BookingFilter{PoolID: pool, Live: true}
	s.Reservations, err = r.Reservations(ledger.Scope{All: true}, filter, ledger.Page{Limit: 500})
	require.NoError(t, err)
	s.Allocations, err = r.Allocations(ledger.Scope{All: true}, filter, ledger.Page{Limit: 500})
	require.NoError(t, err)
	return s
}
