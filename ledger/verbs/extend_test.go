package verbs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// allocateFor allocates GPUs at once, on a node that is ready.
func (w *world) allocateFor(by ledger.Actor, gpus int, lease time.Duration) allocation.Allocation {
	w.Helper()
	a, err := w.ledger.Allocate(w.Context(), by, ledger.AllocateRequest{Pool: "lab", GPUs: gpus, Lease: lease})
	require.NoError(w, err)
	return a
}

// readCommitments is what an organization is committed to, counted from its rows.
func (w *world) readCommitments(org string) (c ledger.Commitments) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) { c, err = r.Commitments(org); return err })
	return c
}

// A GPU-hour costs 1 $. The lease begins at 23:00 and is prolonged over midnight.
func TestAnExtensionOverMidnightCountsWhereTheLeaseBegan(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]quota.Limits{
		"money":            {GPUs: 100, MoneyPerPeriod: quota.AtMost(int64(6 * money.USD))},
		"GPU-hours":        {GPUs: 100, GPUHours: quota.AtMost(6)},
		"money, a month":   {GPUs: 100, Period: quota.PerMonth, MoneyPerPeriod: quota.AtMost(int64(6 * money.USD))},
		"hours in a month": {GPUs: 100, Period: quota.PerMonth, GPUHours: quota.AtMost(6)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.clock.Set(time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC))
			w.warmNodes(1)
			w.clock.Set(time.Date(2026, 3, 31, 22, 59, 0, 0, time.UTC))
			ann := w.newLimitedPerson("ann", limits)
			other := w.allocateFor(ann, 1, 2*time.Hour) // it spends a minute's worth of its day, as it is released
			a := w.allocateFor(ann, 1, 2*time.Hour)
			w.clock.Set(w.clock.Now().Add(time.Hour))
			_, err := w.ledger.Release(t.Context(), ann, other.ID)
			require.NoError(t, err) // 1 of 6 is spent, 2 are promised
			w.clock.Set(time.Date(2026, 4, 1, 0, 10, 0, 0, time.UTC))

			restarted := w.restartedLedger()
			for _, l := range []*verbs.Ledger{restarted, w.ledger} {
				_, err = l.Extend(t.Context(), ann, a.ID, 3*time.Hour+time.Second)
				codes := itemErrors(t, err)
				require.Len(t, codes, 1)
				require.Contains(t, []admission.Code{admission.SpendingExceeded, admission.GPUHoursExceeded}, codes[0])
				require.ErrorContains(t, err, "2026-03-31", "it says where the lease counts")
			}
			_, err = w.ledger.Extend(t.Context(), ann, a.ID, 3*time.Hour)
			require.NoError(t, err, "up to the limit")
			_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Second)
			require.Error(t, err)
			w.allocateFor(ann, 1, 6*time.Hour) // the new period is untouched
		})
	}
}

func TestTheWindowOfACapIsTheWholeLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	bot := agentBeside(w.newPerson("ann"), "bot")
	bot.Caps.MaxWindow = 10 * time.Minute
	a := w.allocateFor(bot, 1, 9*time.Minute)
	_, err := w.ledger.Extend(t.Context(), bot, a.ID, 61*time.Second)
	require.Equal(t, []admission.Code{admission.KeyCapExceeded}, itemErrors(t, err))
	_, err = w.ledger.Extend(t.Context(), bot, a.ID, time.Minute)
	require.NoError(t, err)
	_, err = w.ledger.Extend(t.Context(), bot, a.ID, time.Second)
	require.Equal(t, []admission.Code{admission.KeyCapExceeded}, itemErrors(t, err))
}

// What an extension costs counts for the holder, so the holder's caps hold, and a
// key with caps of its own extends nothing that does not count for them.
func TestWhoseCapsHoldForAnExtension(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	k.warmNodes(2)
	three := func(key *ledger.Key) {
		key.Caps = quota.Caps{MaxGPUs: 8, MaxPerDay: 3 * money.USD, MaxLead: 24 * time.Hour, MaxWindow: 24 * time.Hour}
	}
	require.NoError(t, k.mintKey("root", "free", ledger.Member))
	require.NoError(t, k.mintKey("root", "capped", ledger.Admin, three))
	require.NoError(t, k.mintKey("capped", "child", ledger.Member, three))
	free, capped, child := k.mustActor("free"), k.mustActor("capped"), k.mustActor("child")
	extend := func(by ledger.Actor, a allocation.Allocation, d time.Duration) error {
		_, err := k.ledger.Extend(t.Context(), by, a.ID, d)
		return err
	}

	theirs := k.allocateFor(free, 1, time.Hour)
	require.ErrorAs(t, extend(capped, theirs, time.Hour), new(*ledger.NotHolderError),
		"it would count for the colleague")
	require.ErrorAs(t, extend(child, theirs, time.Hour), new(*ledger.NotHolderError))
	require.Equal(t, theirs.LeaseUntil, k.readAllocation(theirs.ID).LeaseUntil)

	own := k.allocateFor(capped, 1, time.Hour)
	require.ErrorAs(t, extend(child, own, time.Minute), new(*ledger.NotHolderError), "it does not count for the child")
	require.Equal(t, []admission.Code{admission.KeyCapExceeded},
		itemErrors(t, extend(free, own, 2*time.Hour+time.Second)),
		"the holder's caps hold, whoever asks")
	require.NoError(t, extend(free, own, time.Hour))

	made := k.allocateFor(child, 1, 30*time.Minute) // the maker has 30 minutes left
	require.Equal(t, []admission.Code{admission.KeyCapExceeded},
		itemErrors(t, extend(capped, made, 30*time.Minute+time.Second)))
	require.NoError(t, extend(capped, made, 30*time.Minute), "what counts for its caps it may extend")
}

// What waited gets its place after midnight, and counts for the day before.
func TestAPromotionCountsWhereItsWindowBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Set(time.Date(2026, 3, 2, 21, 0, 0, 0, time.UTC))
	w.warmNodes(4)
	bob := w.newPerson("bob")
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 100, MoneyPerPeriod: quota.AtMost(int64(4 * money.USD))})
	most := w.allocateFor(bob, 7, 6*time.Hour)
	waiting := w.reserveWaiting(ann, 2, w.windowAfter(2*time.Hour, 4*time.Hour)) // for 4 $
	w.allocateFor(ann, 1, 3*time.Hour)
	w.pass(3*time.Hour - 2*boot)
	_, err := w.ledger.Release(t.Context(), bob, most.ID)
	require.NoError(t, err)
	w.pass(3 * boot)
	require.False(t, w.readReservation(waiting.ID).Placed())
	c := w.readCommitments(ann.OrganizationID)
	require.Equal(t, 3*money.USD, c.All.On(waiting.Window.Start).Cost)
}

// An agent's plan prolongs a reservation that it keeps.
func TestAKeptReservationCountsWhereItBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("ann"), "bot")
	bot.Caps.MaxWindow, bot.Caps.MaxPerDay = 3*time.Hour, 3*money.USD
	want := ledger.DemandWindow{Start: monday.Add(14 * time.Hour), End: monday.Add(16 * time.Hour), GPUs: 1,
		Probability: 0.5}
	w.setDemand(bot, want)
	for _, caps := range []quota.Caps{
		{MaxWindow: 3 * time.Hour, MaxPerDay: 100 * money.USD}, {MaxWindow: 24 * time.Hour, MaxPerDay: 3 * money.USD},
	} {
		bot.Caps.MaxWindow, bot.Caps.MaxPerDay = caps.MaxWindow, caps.MaxPerDay
		want.End = monday.Add(18 * time.Hour) // the part after midnight is within every cap
		w.setDemand(bot, want)
		for window := range w.coveredWindows(bot) {
			require.LessOrEqual(t, window.Length(), 3*time.Hour)
		}
	}
	want.End = monday.Add(17 * time.Hour)
	w.setDemand(bot, want)
	require.Len(t, w.coveredWindows(bot), 1)
}

// Whatever is allocated, extended, reserved, cancelled and released, and whenever,
// no period has more than its limit, and none of a key's days more than its cap.
func TestNoPeriodHasMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newKeyring(t)
		w.clock.Set(time.Date(2026, 3, 30, 20, 0, 0, 0, time.UTC))
		w.warmNodes(4)
		caps := quota.Caps{
			MaxGPUs: 8, MaxLead: 48 * time.Hour, MaxWindow: 24 * time.Hour, MaxPerDay: 3*money.USD + 1,
			GPUHoursPerDay: quota.AtMost(4),
		}
		require.NoError(t, w.mintKey("root", "free", ledger.Member))
		require.NoError(t, w.mintKey("root", "bot", ledger.Member,
			func(k *ledger.Key) { k.Kind, k.Caps = ledger.AgentKey, caps }))
		ann, bot := w.mustActor("free"), w.mustActor("bot")
		limits := quota.Limits{
			GPUs: 100, Weight: 1, GPUHours: quota.AtMost(rapid.Int64Range(1, 12).Draw(r, "hours")),
			MoneyPerPeriod: quota.AtMost(rapid.Int64Range(1, 12).Draw(r, "dollars") * int64(money.USD)),
			Period:         rapid.SampledFrom([]quota.Period{quota.PerDay, quota.PerMonth}).Draw(r, "period"),
		}
		_, err := w.setLimits(ann, limits, false)
		require.NoError(t, err)
		var held []string
		for range rapid.IntRange(4, 16).Draw(r, "steps") {
			by := []ledger.Actor{ann, bot}[rapid.IntRange(0, 1).Draw(r, "by")]
			minutes := time.Duration(rapid.IntRange(1, 400).Draw(r, "minutes")) * time.Minute
			acts := []string{"allocate", "extend", "extend", "extend", "release", "reserve", "pass", "restart"}
			switch rapid.SampledFrom(acts).Draw(r, "act") {
			case "allocate":
				a, err := w.ledger.Allocate(w.Context(), by,
					ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: minutes})
				if err == nil {
					held = append(held, a.ID)
				}
			case "reserve":
				_, _ = w.ledger.Reserve(w.Context(), by, ledger.ReserveRequest{
					Pool: "lab", GPUs: 1, Class: reservation.Guaranteed,
					Window: w.windowAfter(minutes, minutes+time.Hour),
				})
			case "pass":
				w.pass(minutes)
			case "restart":
				w.ledger = w.restartedLedger()
			default:
				if len(held) == 0 {
					continue
				}
				id := rapid.SampledFrom(held).Draw(r, "id")
				if rapid.IntRange(0, 3).Draw(r, "release") == 0 {
					_, _ = w.ledger.Release(w.Context(), by, id)
				} else if _, err := w.ledger.Extend(w.Context(), by, id, minutes); err != nil {
					require.False(r, errors.As(err, new(*ledger.InvalidError)))
				}
			}
			w.withinLimits(r, ann.OrganizationID, limits, bot)
		}
	})
}

func (w *world) withinLimits(t require.TestingT, org string, limits quota.Limits, bot ledger.Actor) {
	c := w.readCommitments(org)
	for _, day := range []int{30, 31, 32, 33, 34, 35, 36, 37} {
		at := time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC)
		sum := c.All.In(limits.Period, at)
		require.True(t, limits.MoneyPerPeriod.Allows(int64(sum.Cost)), "%s in the %s of %s", sum.Cost, limits.Period,
			at)
		require.LessOrEqual(t, sum.GPUSeconds, 3600*limits.GPUHours.Int64())
		if own := c.ByKey[bot.KeyID]; own != nil {
			require.LessOrEqual(t, own.On(at).Cost, bot.Caps.MaxPerDay)
			require.LessOrEqual(t, own.On(at).GPUSeconds, 3600*bot.Caps.GPUHoursPerDay.Int64())
		}
	}
}
