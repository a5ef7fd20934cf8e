package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// spentIsTheSum follows numbers by hand. A node of four GPUs costs 8 $/h, so a
// GPU-hour costs 2 $.
func spentIsTheSum(w *world) {
	n := saveGround(w)
	now := w.now()
	today := quota.Day(now)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return today.Add(d) }
	promise := func(id, key string, start time.Time, events ...reservation.Event) reservation.Reservation {
		r := bookedReservation(w, id, "org_1", "pol_1", start)
		r.MadeBy = key
		return applyEvents(w, r, start, events...)
	}
	ended := func(r reservation.Reservation, by reservation.Event, after time.Duration) reservation.Reservation {
		return applyEvents(w, r, r.WarmedAt.Add(after), by)
	}
	warmed := func(id, key string, start time.Time) reservation.Reservation {
		return promise(id, key, start, reservation.Warm)
	}
	w.mustSave(ledger.Change{
		Reservations: []reservation.Reservation{
			ended(warmed("rsv_1", "key_1", at(0)), reservation.Cancel, time.Minute), // 5 GPUs
			ended(warmed("rsv_2", "key_1", at(time.Hour)), reservation.FailWindow, 1500*time.Millisecond),
			ended(warmed("rsv_3", "key_2", month), reservation.Cancel, time.Second),
			promise("rsv_4", "key_3", at(0),
				reservation.Cancel), // cost is what is stored
			ended(warmed("rsv_5", "key_1", month.Add(-time.Microsecond)), reservation.Cancel,
				time.Second), // another month's
			warmed("rsv_6", "key_1", at(0)), // lives
			moveReservation( // elsewhere
				ended(warmed("rsv_7", "key_1", at(0)), reservation.Cancel, time.Second), "org_2", "pol_2"),
			moveReservation(
				ended(warmed("rsv_8", "key_1", at(0)), reservation.Cancel, 2*time.Second), "org_2", "pol_1"),
		},
		Allocations: []allocation.Allocation{
			releasedAllocation(w, // 3 GPU-hours
				activeAllocation(w, "alc_1", "org_1", n, at(0), 0, 1), at(90*time.Minute)),
			releasedAllocation(w,
				activeAllocation(w, "alc_2", "org_1", n, at(time.Hour), 2), at(time.Hour+time.Second)),
			activeAllocation(w, "alc_3", "org_1", n, at(0), 3),
			applyEvents(w, // held nothing
				pendingAllocation("alc_4", "org_1", "pol_1", at(0)), at(time.Hour), allocation.Cancel),
		},
	})
	spend := func(org, key string, day time.Time, n, seconds int) ledger.Spend {
		return ledger.Spend{OrganizationID: org, MadeBy: key, UserID: "usr_1", Class: reservation.Speculative, Day: day,
			Cost: money.MicroUSD(n) * 16 * money.USD, GPUSeconds: int64(seconds)}
	}
	first := []ledger.Spend{spend("org_1", "key_1", today, 2, 5*60+5), spend("org_1", "key_2", month, 1, 5)}
	first = append(first, spend("org_1", "key_3", today, 1, 0), spend("org_2", "key_1", today, 1, 10))
	want := append(first, ledger.Spend{OrganizationID: "org_1", MadeBy: "key_1", UserID: "usr_1", Day: today,
		GPUSeconds: 3*3600 + 1, Cost: 6*money.USD + (2 * money.USD).For(time.Second)})
	state := readValue(w, func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState("pol_1") })
	require.Equal(w, want, state.Spent)
}

// spentCountsWhereLeasesBegan: what is live can be prolonged, and counts in the
// month in which it began; so what ended in that month still counts.
func spentCountsWhereLeasesBegan(w *world) {
	n := saveGround(w)
	now := w.now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	first := month.AddDate(0, -1, 0) // of the month before
	w.mustSave(ledger.Change{Allocations: []allocation.Allocation{
		releasedAllocation(w, activeAllocation(w, "alc_1", "org_1", n, first, 0), first.Add(time.Hour)),
	}})
	spent := func() money.MicroUSD {
		c := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.Commitments("org_1") })
		var pool ledger.Commitments
		for _, s := range readValue(w,
			func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState("pol_1") }).Spent {
			pool.Spend(s)
		}
		require.Equal(w, c.All.In(quota.PerMonth, first), pool.All.In(quota.PerMonth, first))
		return pool.All.In(quota.PerMonth, first).Cost
	}
	require.Zero(w, spent(), "nothing can be added to that month")
	w.mustSave(ledger.Change{Reservations: []reservation.Reservation{
		bookedReservation(w, "rsv_0", "org_2", "pol_2", month)}})
	require.Zero(w, spent(), "nor by what began with this month")
	w.mustSave(ledger.Change{Reservations: []reservation.Reservation{bookedReservation(w, "rsv_1", "org_2", "pol_2",
		month.Add(-time.Second))}})
	require.Equal(w, 2*money.USD, spent())
}

func moveReservation(r reservation.Reservation, org, pool string) reservation.Reservation {
	r.OrganizationID, r.PoolID = org, pool
	return r
}

// liveAndSpentAreCommitments: what is live in all pools, and what ended bookings
// have spent there, add up to Commitments.
func liveAndSpentAreCommitments(w *world) {
	n := saveGround(w)
	now := w.now()
	rng := rand.New(rand.NewPCG(3, 4))
	all := randomReservations(w, rng, now)
	for i := range all {
		all[i].PoolID = fmt.Sprintf("pol_%d", 1+rng.IntN(2))
	}
	w.mustSave(ledger.Change{Reservations: all, Allocations: []allocation.Allocation{
		activeAllocation(w, "alc_1", "org_1", n, now, 0, 1), pendingAllocation("alc_2", "org_1", "pol_2", now),
		releasedAllocation(w, activeAllocation(w, "alc_3", "org_1", n, now.Add(-time.Hour), 2), now),
	}})
	for _, org := range []string{"org_1", "org_2"} {
		want := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.Commitments(org) })
		var got ledger.Commitments
		for _, id := range []string{"pol_1", "pol_2"} {
			state := readValue(w, func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState(id) })
			for i := range state.Reservations {
				if r := &state.Reservations[i]; r.OrganizationID == org {
					got.Reservation(state.Pool.Pool, r, false)
				}
			}
			for i := range state.Allocations {
				if a := &state.Allocations[i]; a.OrganizationID == org {
					got.Allocation(state.Pool.Pool, a, false)
				}
			}
			for _, s := range state.Spent {
				if s.OrganizationID == org {
					got.Spend(s)
				}
			}
		}
		requireSameSums(w, &want.All, &got.All, now)
		requireSameSums(w, &want.Speculative, &got.Speculative, now)
		sameParts(w, want.ByKey, got.ByKey, now)
		sameParts(w, want.ByUser, got.ByUser, now)
	}
}
