package verbs_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// TestEveryProcessRemembersWhatIsStored has two processes make random histories in
// turn. After each step, each of them remembers what a new process reads.
func TestEveryProcessRemembersWhatIsStored(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if !thorough {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			for step := range 120 {
				h.ledger = h.processes[h.rand.IntN(len(h.processes))]
				done := h.act()
				stored := rememberedBy(h.world, h.restartedLedger(), h.people)
				for i, process := range h.processes {
					require.Equal(t, stored, rememberedBy(h.world, process, h.people), "process %d after step %d: %s", i,
						step, done)
				}
			}
			require.NotEmpty(t, h.readEvents("allocation.active"), "the history is of use")
		})
	}
}

// history is a world in which several processes take turns.
type history struct {
	*world
	rand      *rand.Rand
	processes []*verbs.Ledger
	people    []ledger.Actor
	other     ledger.Pool // what is held there counts for the organizations, and is read without its lock
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{world: newWorld(t), rand: rand.New(rand.NewPCG(seed, 1))}
	def := h.pool.Pool
	def.Name, def.Timers.Cleaning = "other", time.Minute
	var err error
	h.other, err = h.ledger.CreatePool(t.Context(), operator, def, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(t, err)
	h.processes = []*verbs.Ledger{h.ledger, h.restartedLedger()}
	for _, name := range []string{"ann", "bob"} {
		h.people = append(h.people, h.newPerson(name))
	}
	return h
}

// act does something at random, and says what. What is refused changes nothing.
func (h *history) act() string {
	who := h.people[h.rand.IntN(len(h.people))]
	from := time.Duration(h.rand.IntN(300)) * time.Minute
	window := h.windowAfter(from, from+time.Duration(10+h.rand.IntN(120))*time.Minute)
	gpus, pool := 1+h.rand.IntN(3), []string{"lab", "lab", "other"}[h.rand.IntN(3)]
	switch h.rand.IntN(12) {
	case 0, 1:
		_, err := h.ledger.Reserve(h.Context(), who, ledger.ReserveRequest{Pool: pool, GPUs: gpus, Window: window,
			Queue: true})
		return fmt.Sprint("reserve: ", err)
	case 2:
		agent := agentBeside(who, "agent of "+who.OrganizationID)
		_, err := h.ledger.Reserve(h.Context(), agent, ledger.ReserveRequest{Pool: pool, GPUs: gpus, Window: window,
			Probability: 0.75})
		return fmt.Sprint("speculative: ", err)
	case 3, 4:
		_, err := h.ledger.Allocate(h.Context(), who, ledger.AllocateRequest{Pool: pool, GPUs: gpus, Lease: time.Hour})
		return fmt.Sprint("allocate: ", err)
	case 5:
		return h.endReservation(who)
	case 6:
		return h.endAllocation(who)
	case 7:
		return h.editPool()
	default:
		d := time.Duration(1+h.rand.IntN(40)) * time.Minute
		h.pass(d)
		return "pass " + d.String()
	}
}

// endReservation claims or cancels one of somebody's reservations.
func (h *history) endReservation(who ledger.Actor) string {
	live := h.liveOf(who.KeyID)
	if len(live) == 0 {
		return "nothing"
	}
	r := live[h.rand.IntN(len(live))]
	if r.State() == reservation.Ready {
		_, err := h.ledger.Claim(h.Context(), who, r.ID, time.Hour, "")
		return fmt.Sprint("claim: ", err)
	}
	_, err := h.ledger.CancelReservation(h.Context(), who, r.ID)
	return fmt.Sprint("cancel: ", err)
}

// endAllocation releases one of somebody's allocations.
func (h *history) endAllocation(who ledger.Actor) string {
	var live []allocation.Allocation
	h.read(func(r ledger.Reader) (err error) {
		live, err = r.Allocations(who.Scope(), ledger.BookingFilter{Live: true}, ledger.Page{Limit: 100})
		return err
	})
	if len(live) == 0 {
		return "nothing"
	}
	_, err := h.ledger.Release(h.Context(), who, live[h.rand.IntN(len(live))].ID)
	return fmt.Sprint("release: ", err)
}

// editPool changes how long devices are cleaned, which is part of the calendar.
func (h *history) editPool() string {
	id := []string{h.pool.ID, h.other.ID}[h.rand.IntN(2)]
	var seen ledger.Pool
	h.read(func(r ledger.Reader) (err error) {
		seen, err = r.Pool(id)
		return err
	})
	cleaning := time.Duration(1+h.rand.IntN(3)) * 5 * time.Minute
	_, err := h.ledger.UpdatePool(h.Context(), operator, id, seen.DefinitionVersion, func(p *capacity.Pool) {
		p.Timers.Cleaning = cleaning
	})
	return fmt.Sprintf("edit %s: %v", seen.Name, err)
}

// memory is what a process remembers of a pool, as values that can be compared.
type memory struct {
	Pool         ledger.Pool
	Nodes        []node.Node
	Reservations []reservation.Reservation
	Allocations  []allocation.Allocation
	Places       []calendar.Booking
	FreeBusy     []calendar.Level
	Rest         []any
	Commitments  map[string]string
}

// rememberedBy returns what a process remembers once it has locked the pool.
func rememberedBy(w *world, l *verbs.Ledger, people []ledger.Actor) memory {
	w.Helper()
	m := memory{Commitments: map[string]string{}}
	require.NoError(w, l.Booking.InOwnTx(w.Context(), operator, func(tx *txn.Tx) error {
		p, err := tx.LockPool(w.pool.ID)
		if err != nil {
			return err
		}
		m.Pool, m.Nodes = p.Pool, slices.Collect(p.Nodes.All())
		m.Reservations, m.Allocations = slices.Collect(p.Reservations.All()), slices.Collect(p.Allocations.All())
		for slot := range p.Places.Size() {
			m.Places = append(m.Places, p.Places.On(slot, calendar.Interval{Start: monday, End: monday.AddDate(0, 1, 0)})...)
		}
		whole := ledger.PoolState{Pool: m.Pool, Nodes: m.Nodes, Reservations: m.Reservations, Allocations: m.Allocations}
		require.Equal(w, whole.BuildCalendar().String(), p.Places.String(), "the calendar is what the rows occupy")
		m.FreeBusy = p.Places.FreeBusy(tx.Now(), tx.Now().Add(24*time.Hour), time.Hour)
		soon := calendar.Interval{Start: tx.Now(), End: tx.Now().Add(time.Hour)}
		tiers := txn.TiersFor(p, soon, tx.Now(), tx.Config.Policy)
		m.Rest = []any{p.Taken, p.Uses, p.Cleaning, p.Definition, p.SpeculativeBookings(), tiers}
		for _, who := range people {
			c, err := tx.Commitments(who.OrganizationID)
			if err != nil {
				return err
			}
			m.Commitments[who.OrganizationID] = describeCommitments(c)
		}
		return nil
	}))
	return m
}

func describeCommitments(c *ledger.Commitments) string {
	var b strings.Builder
	part := func(name string, c *quota.Commitments) {
		var lines []string
		for at, more := c.Next(time.Time{}); more; at, more = c.Next(at) {
			lines = append(lines, fmt.Sprint(at, c.At(at)))
		}
		for _, day := range c.Days() {
			lines = append(lines, fmt.Sprint(day, c.On(day)))
		}
		if len(lines) > 0 {
			fmt.Fprintln(&b, name, lines)
		}
	}
	part("all", &c.All)
	part("speculative", &c.Speculative)
	for _, parts := range []map[string]*quota.Commitments{c.ByKey, c.ByUser} {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			part(name, parts[name])
		}
	}
	return b.String()
}
