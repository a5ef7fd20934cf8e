package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// What a lease costs is one number: what is quoted is what a budget must hold,
// though nodes must boot first, and what was held is what it has spent at last.
func TestABudgetCountsWhatIsQuoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	half := func(l *quota.Limits, more money.MicroUSD) quota.Limits {
		l.GPUs, l.MoneyPerPeriod = 100, quota.AtMost(int64(money.USD+more)) // two GPUs for half an hour
		return *l
	}
	spent := func(by ledger.Actor) quota.Spend {
		c := w.readCommitments(by.OrganizationID)
		return c.All.On(w.clock.Now())
	}
	ask := ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: 30 * time.Minute}

	poor := w.newLimitedPerson("poor", half(&quota.Limits{}, -1))
	_, err := w.ledger.Allocate(t.Context(), poor, ask)
	require.Equal(t, []admission.Code{admission.SpendingExceeded}, itemErrors(t, err))

	ann := w.newLimitedPerson("ann", half(&quota.Limits{}, 0))
	a, err := w.ledger.Allocate(t.Context(), ann, ask)
	require.NoError(t, err, "the boot is not paid for")
	require.Equal(t, money.USD, a.Cost)
	whole := quota.Spend{Cost: money.USD, GPUSeconds: 3600}
	require.Equal(t, whole, spent(ann), "while it waits")
	w.pass(boot)
	require.Equal(t, whole, spent(ann), "while it is held")
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Second)
	require.Equal(t, []admission.Code{admission.SpendingExceeded}, itemErrors(t, err))

	w.clock.Advance(90*time.Second + 290*time.Millisecond)
	a, err = w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, w.readAllocation(a.ID).Cost, spent(ann).Cost)
	require.Equal(t, (2 * money.USD).For(90*time.Second+290*time.Millisecond), spent(ann).Cost)
}

// A key that may have leases of half an hour has one, however long nodes boot.
func TestABootIsNotPartOfALeasesLength(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	require.NoError(t, k.mintKey("root", "short", ledger.Member, func(key *ledger.Key) {
		key.Caps = quota.Caps{MaxGPUs: 8, MaxPerDay: money.USD, MaxLead: time.Hour, MaxWindow: 30 * time.Minute}
	}))
	a, err := k.ledger.Allocate(t.Context(), k.mustActor("short"),
		ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: 30 * time.Minute})
	require.NoError(t, err)
	require.Equal(t, money.USD, a.Cost)
}

// However long a lease is asked for, the longest that would be given is offered.
func TestTheLongestLeaseIsOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	ann := w.newPerson("ann")
	for _, length := range []time.Duration{25 * time.Hour, 30 * 24 * time.Hour, 1_000_000 * time.Hour} {
		_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: length})
		require.Contains(t, offeredLengths(t, err), 24*time.Hour, "allocate for %s", length)
		window := w.windowAfter(time.Hour, time.Hour+length)
		_, err = w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
		require.Contains(t, offeredLengths(t, err), 24*time.Hour, "reserve for %s", length)
	}
}

func offeredLengths(t *testing.T, err error) (offered []time.Duration) {
	t.Helper()
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	for _, o := range refused.Decision.Offers {
		offered = append(offered, o.Window.Length())
	}
	return offered
}
