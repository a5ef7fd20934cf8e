package verbs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// failsLate is a transaction that fails when it is committed.
type failsLate struct{ ledger.Tx }

func (f failsLate) Save(c ledger.Change) error {
	c.Last = false
	if err := f.Tx.Save(c); err != nil {
		return err
	}
	return errFull
}

// TestAFailedGroupLeavesWhatTheDatabaseHas: groups fail before they write, or when they
// commit. After each, a process remembers of rows, the calendar and what organizations are
// committed to what another one reads from the database.
func TestAFailedGroupLeavesWhatTheDatabaseHas(t *testing.T) {
	t.Parallel()
	failed := 0
	for seed := range uint64(4) {
		w := newWorld(t)
		l, g := w.gatedLedger()
		random := rand.New(rand.NewPCG(seed, 13))
		people := []ledger.Actor{w.newPerson("ann"), w.newLimitedPerson("bob", quota.Limits{GPUs: 6})}
		for round := range 25 {
			g.mu.Lock()
			g.fail, g.late = 2+random.IntN(3), random.IntN(2) == 0 // the one they wait for, their group, some alone
			g.mu.Unlock()
			steps := make([]func() error, 5)
			for i := range steps {
				who := people[random.IntN(2)]
				live, which := w.liveOf(who.KeyID), random.IntN(8)
				request := ledger.ReserveRequest{Pool: "lab", GPUs: 1 + random.IntN(3), Window: dayWindow(7 + random.IntN(4))}
				steps[i] = func() error {
					if which < len(live) {
						_, err := l.CancelReservation(t.Context(), who, live[which].ID)
						return err
					}
					_, err := l.Reserve(t.Context(), who, request)
					return err
				}
			}
			for _, err := range sendTogether(l, g, len(steps), func(i int) error { return steps[i]() }) {
				if err != nil {
					failed++
				}
			}
			g.mu.Lock()
			g.fail = 0
			g.mu.Unlock()
			require.Equal(t, rememberedBy(w, w.restartedLedger(), people), rememberedBy(w, l, people),
				fmt.Sprintf("seed %d, round %d", seed, round))
		}
	}
	require.Positive(t, failed)
}
