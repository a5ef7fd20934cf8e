package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// firstReason returns the first reason of a refusal, without its message.
func firstReason(t *testing.T, err error) admission.Reason {
	t.Helper()
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	reason := refused.Decision.Reasons[0]
	reason.Message = ""
	return reason
}

// lastMessage is what the newest event of a type says.
func (w *world) lastMessage(kind string) string {
	w.Helper()
	events := w.readEvents(kind)
	require.NotEmpty(w, events)
	return events[len(events)-1].Message
}

func TestARefusedLeaseIsToldInSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	r := w.mustReserve(ann, 2, w.windowAfter(time.Hour, 2*time.Hour))
	_, err := w.ledger.Claim(t.Context(), ann, r.ID, 0, "")
	require.Equal(t, admission.Reason{Code: admission.ClaimTooEarly, Unit: "seconds", Limit: 6 * 60, Asked: 3600,
		At: r.Window.Start, ClearsAt: r.Window.Start.Add(-boot - guard)}, firstReason(t, err))
	w.pass(65 * time.Minute)
	_, err = w.ledger.Claim(t.Context(), ann, r.ID, 90*time.Minute, "")
	require.Equal(t, admission.Reason{Code: admission.ClaimTooLong, Unit: "seconds", Limit: 3600, Asked: 90 * 60},
		firstReason(t, err))
	a, err := w.ledger.Claim(t.Context(), ann, r.ID, time.Hour, "")
	require.NoError(t, err)
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, 23*time.Hour+time.Second)
	require.Equal(t, admission.Reason{Code: admission.WindowTooLong, Unit: "seconds", Limit: 24 * 3600,
		Asked: 24*3600 + 1}, firstReason(t, err))
	a, err = w.ledger.Extend(t.Context(), ann, a.ID, 23*time.Hour)
	require.NoError(t, err, "as long as the pool allows")
	require.Equal(t, 24*time.Hour, a.LeaseUntil.Sub(a.ActiveAt))
}

// What an extension would displace makes it no shorter than the pool allows.
func TestAnExtensionThatDisplacesIsNotTooLongEither(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 8)
	w.pass(boot)
	speculative := w.mustReserve(agentBeside(w.newPerson("bob"), "agent"), 2,
		w.windowAfter(65*time.Minute, 3*time.Hour))
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, 24*time.Hour)
	require.Equal(t, admission.WindowTooLong, firstReason(t, err).Code)
	require.True(t, w.readReservation(speculative.ID).Placed(), "nothing gave way")
}

// An extension is offered in whole minutes, and less than one to the second.
func TestTheLongestExtensionIsInWholeMinutes(t *testing.T) {
	t.Parallel()
	for room, want := range map[time.Duration]time.Duration{
		30 * time.Second: 30 * time.Second, 59 * time.Second: 59 * time.Second, time.Minute: time.Minute,
		90 * time.Second: time.Minute, 150 * time.Second: 2 * time.Minute,
	} {
		w := newWorld(t)
		ann, bob := w.newPerson("ann"), w.newPerson("bob")
		a := w.mustAllocate(ann, 8)
		w.pass(boot)
		until := w.readAllocation(a.ID).LeaseUntil
		w.mustReserve(bob, 8, calendar.Interval{Start: until.Add(room), End: until.Add(time.Hour)})
		_, err := w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
		var refused *ledger.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, []admission.Offer{{Pool: w.pool.ID, Shape: a.Shape,
			Window: calendar.Interval{Start: until, End: until.Add(want)},
			Cost:   (8 * money.USD).For(want)}}, refused.Decision.Offers, "%s", room)
	}
}

// What a person holds with one key they extend with another; what a colleague holds
// counts for the colleague alone.
func TestAPersonExtendsWhatCountsForThem(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	k.warmNodes(1)
	ada, bea := k.addUser("ada@example.org", ledger.Member), k.addUser("bea@example.org", ledger.Member)
	for id, user := range map[string]ledger.User{"laptop": ada, "desktop": ada, "colleague": bea} {
		require.NoError(t, k.mintKey("root", id, ledger.Member, func(key *ledger.Key) { key.UserID = user.ID }))
	}
	capped := func(id string) ledger.Actor {
		actor := k.mustActor(id)
		actor.UserCaps = quota.Caps{MaxGPUs: 8, MaxPerDay: 3 * money.USD, MaxLead: 24 * time.Hour,
			MaxWindow: 24 * time.Hour}
		return actor
	}
	a := k.allocateFor(capped("laptop"), 1, time.Hour)
	_, err := k.ledger.Extend(t.Context(), capped("colleague"), a.ID, time.Minute)
	require.ErrorAs(t, err, new(*ledger.NotHolderError))
	_, err = k.ledger.Extend(t.Context(), capped("desktop"), a.ID, time.Minute)
	require.NoError(t, err)
}

// An allocation takes over as many of its own speculative reservations as it has GPUs for. Two of one
// GPU stand on one node here.
func TestAnAllocationTakesOverNoMoreThanItUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	bot := agentBeside(ann, "agent")
	first := w.mustReserve(bot, 1, w.windowAfter(0, time.Hour))
	second := w.mustReserve(bot, 1, w.windowAfter(0, time.Hour))
	require.Equal(t, first.Slots, second.Slots)
	a := w.mustAllocate(ann, 1)
	require.Equal(t, first.Slots, a.Slots)
	require.Len(t, a.Reservations, 1)
	require.Len(t, w.liveOf(bot.KeyID), 1)
	require.Equal(t, "claimed by "+a.ID, w.lastMessage("reservation.claimed"))
	named, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour,
		Name: "train"})
	require.NoError(t, err)
	require.Len(t, named.Reservations, 1)
	require.Equal(t, "claimed by train", w.lastMessage("reservation.claimed"))
}

// A speculative reservation of its own that an allocation does not use stays where both are within the
// limit, and gives way where they are not.
func TestAnUnusedSpeculativeReservationStaysWithinTheLimit(t *testing.T) {
	t.Parallel()
	none, two := quota.Bounds{quota.GPUs: quota.AtMost(0)}, quota.Bounds{quota.GPUs: quota.AtMost(2)}
	research := func(gpus int, borrowing quota.Bounds) quota.Limits {
		return quota.Limits{GPUs: gpus, Cohort: "research", Borrowing: borrowing}
	}
	for name, c := range map[string]struct {
		limits, other quota.Limits
		stays         bool
	}{
		"GPUs enough":                 {quota.Limits{GPUs: 4}, quota.Limits{GPUs: 2}, true},
		"too few":                     {quota.Limits{GPUs: 3}, quota.Limits{GPUs: 2}, false},
		"it may not borrow":           {research(2, none), research(4, two), false},
		"the cohort lends":            {research(2, two), research(4, two), true},
		"the cohort uses its own":     {research(2, two), research(3, two), false},
		"the cohort has borrowed its": {research(4, two), research(1, two), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.warmNodes(1)
			warm := w.mustAllocate(w.newPerson("bob"), 2)
			c.limits.SpeculationPerDay = 100 * money.USD
			ann := w.newLimitedPerson("ann", c.limits)
			w.mustReserve(w.newLimitedPerson("other", c.other), 2, w.windowAfter(time.Minute, time.Hour))
			speculative := w.mustReserve(agentBeside(ann, "agent"), 2, w.windowAfter(time.Minute, time.Hour))
			require.NotEqual(t, warm.Slots, speculative.Slots)
			_, err := w.ledger.Release(t.Context(), operator, warm.ID)
			require.NoError(t, err)
			a := w.mustAllocate(ann, 2)
			require.Equal(t, allocation.Active, a.State())
			require.Empty(t, a.Reservations)
			r := w.readReservation(speculative.ID)
			require.Equal(t, c.stays, r.Placed())
			if !c.stays {
				require.Equal(t, []string{string(reservation.Cancelled), "displaced"},
					[]string{string(r.State()), r.Reason})
			}
		})
	}
}

// A wait of five seconds is none.
func TestTheJournalSaysHowLongItWaited(t *testing.T) {
	t.Parallel()
	for wait, says := range map[time.Duration]string{
		5 * time.Second: "1 GPU in lab with zero wait", 6 * time.Second: "1 GPU in lab after 6s",
	} {
		w := newWorld(t)
		first := w.mustAllocate(w.newPerson("ann"), 1)
		w.pass(boot - wait)
		second := w.mustAllocate(w.newPerson("bob"), 1)
		require.Equal(t, first.Slots, second.Slots)
		w.pass(wait)
		require.Equal(t, allocation.Active, w.readAllocation(second.ID).State())
		said := ""
		for _, e := range w.readEvents("allocation.active") {
			if e.Subject == second.ID {
				said = e.Message
			}
		}
		require.Equal(t, says, said)
	}
}

// Whoever claims too early is offered what there is at once, in this pool, beside
// the reservation.
func TestAnEarlyClaimIsOfferedWhatIsLeftNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPool("annex", 2*money.USD, func(p *capacity.Pool) { p.MaxNodes = 4 })
	ann := w.newPerson("ann")
	r := w.mustReserve(ann, 4, w.windowAfter(2*time.Hour, 3*time.Hour))
	w.mustAllocate(w.newPerson("bob"), 6)
	beside := 0
	for _, o := range w.refusedClaim(ann, r.ID, 0).Decision.Offers {
		if o.Reservation == "" {
			beside++
			require.Equal(t, w.pool.ID, o.Pool)
			require.Equal(t, w.clock.Now(), o.Window.Start)
			require.Equal(t, 2, o.Shape.GPUs())
		}
	}
	require.Equal(t, 1, beside)
}

// What is answered is what is stored, with the version to change it by.
func TestALeasesAnswerIsWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	ann := w.newPerson("ann")
	stored := func(a allocation.Allocation, err error) allocation.Allocation {
		require.NoError(t, err)
		require.Equal(t, w.readAllocation(a.ID), a)
		return a
	}
	ask := ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour}
	a := stored(w.ledger.Allocate(t.Context(), ann, ask))
	ask.GPUs = 4
	stored(w.ledger.Allocate(t.Context(), ann, ask)) // waits
	r := w.mustReserve(ann, 1, w.windowAfter(time.Minute, time.Hour))
	stored(w.ledger.Claim(t.Context(), ann, r.ID, 0, ""))
	w.clock.Advance(time.Minute)
	longer := stored(w.ledger.Extend(t.Context(), ann, a.ID, time.Hour))
	require.Greater(t, longer.Version, a.Version)
	require.Equal(t, longer.LeaseUntil, longer.Window.End)
	require.Equal(t, 2*money.USD, longer.Cost)
	require.Equal(t, "1 GPU in lab with zero wait", w.readEvents("allocation.active")[1].Message)
	waits := w.readEvents("allocation.pending")
	require.Equal(t, "4 GPUs in lab: waiting for nodes to boot", waits[len(waits)-1].Message)
	for _, id := range []string{a.ID, waits[len(waits)-1].Subject} {
		require.NotEmpty(t, w.readDecisions(ledger.DecisionFilter{Subject: id}))
	}
	told := w.readEvents("allocation.extended")
	require.Len(t, told, 1)
	require.Equal(t, a.ID, told[0].Subject)
	require.Equal(t, ann.OrganizationID, told[0].OrganizationID)
	require.Contains(t, told[0].Message, "lease now ends Mon 11:05:00Z and costs up to $2.00")
	w.clock.Advance(time.Minute)
	stored(w.ledger.Release(t.Context(), ann, a.ID))
	require.Equal(t, "1 GPU back after 2m", w.lastMessage("allocation.released"))
}

// A node that was given back is idle from then on.
func TestANodeIsIdleSinceItWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 2)
	w.clock.Advance(20 * time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.True(t, w.clock.Now().Equal(w.readNodes(node.Ready)[0].IdleSince))
	require.Empty(t, w.readLearned().Cleaning, "nothing is cleaned here")
	w.pass(9 * time.Minute)
	require.Len(t, w.readNodes(node.Ready), 1, "it stays for those who may come")
	w.pass(2 * time.Minute)
	require.Empty(t, w.readNodes(node.Ready))
}

// A lease counts from when its GPUs were there, and costs that; where somebody else
// has the GPUs next, what a slow boot took is taken off its end.
func TestASlowBootShortensOnlyALeaseThatSomebodyWaitsFor(t *testing.T) {
	t.Parallel()
	const late = 3 * time.Minute
	for name, followed := range map[string]bool{"nobody is next": false, "somebody is next": true} {
		w := newWorld(t)
		w.changePool(func(p *capacity.Pool) { p.MaxNodes = 1 })
		a := w.mustAllocate(w.newPerson("ann"), 2)
		if followed {
			w.mustReserve(w.newPerson("bob"), 2,
				calendar.Interval{Start: a.Window.End, End: a.Window.End.Add(time.Hour)})
		}
		w.doDueWork()
		for id := range w.up {
			w.up[id] = a.Window.End.Add(late - time.Hour)
		}
		w.pass(30 * time.Minute)
		active := w.readAllocation(a.ID)
		require.Equal(t, allocation.Active, active.State(), name)
		lease := active.LeaseUntil.Sub(active.ActiveAt)
		if followed {
			require.Equal(t, a.Window.End, active.LeaseUntil, name)
			require.Less(t, lease, time.Hour, name)
		} else {
			require.Equal(t, time.Hour, lease, name)
		}
		require.Equal(t, active.LeaseUntil, active.Window.End, name)
		require.Equal(t, (2 * money.USD).For(lease), active.Cost, name)
	}
}

// What runs on a node that is kept for inspection may be prolonged; nothing new
// begins there.
func TestALeaseOnAKeptNodeIsExtended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.changePool(func(p *capacity.Pool) { p.MaxNodes = 1 })
	w.warmNodes(1)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 1)
	_, err := w.ledger.QuarantineNode(t.Context(), operator, w.readNodes(node.Ready)[0].ID, "")
	require.NoError(t, err)
	for range 2 {
		_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
		require.NoError(t, err)
		_, err = w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
		require.Error(t, err)
	}
}
