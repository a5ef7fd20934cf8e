package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// Explanation is why something is as it is, what stands in its way, and what
// comes next.
type Explanation struct {
	At        time.Time
	Kind      string // reservation, allocation, node or request
	Subject   string // empty: a request that was only asked about
	State     string
	Reason    string // a code
	Summary   string // one sentence for people
	PoolID    string
	Since     time.Time
	Degraded  bool
	Blockers  []Blocker
	Refused   *RefusedError     // of what admission refuses now, else nil
	Instead   []admission.Offer // where what gave way would have had a place, then
	Wait      *plan.Estimate    // of what waits, else nil
	Next      []Step            // in the order of their times
	Decisions []Event           // newest first
	Effect    Effect            // of a request that was only asked about
}

// Blocker is one thing that stands in the way, beside what admission refuses.
type Blocker struct {
	Code     string
	Message  string
	Evidence []string // ids and numbers that were looked at
	Fix      string   // a command; may be empty
	ClearsAt *Band    // nil: time alone does not clear it
}

// Band is an instant that is not known: it is earlier with a chance of 10, 50
// and 90 percent.
type Band struct{ P10, P50, P90 time.Time }

// Step is something that happens at a time unless something else does before.
type Step struct {
	Code    string
	At      time.Time
	Message string
}

// recentDecisions is how many decisions an explanation tells of.
const recentDecisions = 20

// explained is what the explanations of stored things have in common.
type explained struct {
	Explanation
	state PoolState
	cfg   Config
}

func (l *Ledger) explained(r Reader, actor Actor, subject, poolID string) (*explained, error) {
	state, err := r.PoolState(poolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	state.Pool = state.Pool.asked(r.Now())
	e := &explained{state: state, cfg: l.cfg}
	e.At, e.Subject, e.PoolID = r.Now(), subject, poolID
	e.Decisions, err = r.Decisions(actor.Scope(), DecisionFilter{Subject: subject}, recentDecisions)
	return e, err
}

// ClearsAt says when what is full is likely to have room: as early as the wait
// says, or when the calendar promises it.
func (e Explanation) ClearsAt() *Band {
	if e.Wait == nil {
		return nil
	}
	return &Band{P10: e.At.Add(e.Wait.P10), P50: e.At.Add(e.Wait.P50), P90: e.At.Add(e.Wait.P90)}
}

// step adds what is still to come.
func (e *explained) step(code string, at time.Time, format string, args ...any) {
	if at.After(e.At) {
		e.Next = append(e.Next, Step{Code: code, At: at, Message: fmt.Sprintf(format, args...)})
	}
}

func (e *explained) done() Explanation {
	for i := range e.Blockers { // they are what the wait is estimated from
		e.Blockers[i].ClearsAt = e.ClearsAt()
	}
	slices.SortStableFunc(e.Next, func(a, b Step) int { return a.At.Compare(b.At) })
	return e.Explanation
}

// ExplainReservation explains a reservation that the actor may see; an agent
// sees its own.
func (l *Ledger) ExplainReservation(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var e *explained
	var r reservation.Reservation
	err := l.store.Read(ctx, func(rd Reader) (err error) {
		if r, err = rd.Reservation(actor.Scope(), id); err != nil {
			return err
		}
		if actor.Kind == AgentKey && r.MadeBy != actor.KeyID {
			return ErrNotFound
		}
		if e, err = l.explained(rd, actor, id, r.PoolID); err != nil {
			return err
		}
		e.Wait, err = NewWaits(rd).Reservation(r)
		return err
	})
	if err != nil {
		return Explanation{}, err
	}
	e.reservation(r)
	if e.Instead, err = counterOffers(r, e.Decisions); err != nil {
		return Explanation{}, err
	}
	if r.State() == reservation.Waitlisted {
		if e.Refused, err = l.refusedNow(ctx, r); err != nil {
			return Explanation{}, err
		}
	}
	return e.done(), nil
}

// counterOffers finds what a displaced reservation was offered by the decision
// that it gave way to. The rest of that decision is not its owner's to know.
func counterOffers(r reservation.Reservation, decisions []Event) ([]admission.Offer, error) {
	for _, e := range decisions {
		d, err := ReadDecision(e.Decision)
		if err != nil {
			return nil, err
		}
		if d.Kind != DecisionDisplacement || d.Record == nil {
			continue
		}
		record, err := admission.DecodeRecord(d.Record)
		if err != nil {
			return nil, fmt.Errorf("reading what %s gave way to: %w", r.ID, err)
		}
		for _, gone := range record.Decision.Displaced {
			if gone.ID == r.ID && gone.Offer != nil {
				return []admission.Offer{*gone.Offer}, nil
			}
		}
	}
	return nil, nil
}

// refusedNow asks what a waitlisted reservation would be told if it were made
// now; nil means that there is a place, which the planner is about to give it.
func (l *Ledger) refusedNow(ctx context.Context, r reservation.Reservation) (*RefusedError, error) {
	owner := Actor{KeyID: r.MadeBy, Kind: PersonKey, OrganizationID: r.OrganizationID, Role: Member, Via: "explain"}
	_, _, err := l.Rehearse(ctx, owner, func(ctx context.Context, l *Ledger) (int, []byte, error) {
		window := r.Window
		if now := l.now(ctx); window.Start.Before(now) {
			window.Start = now
		}
		_, err := l.Reserve(ctx, owner, ReserveRequest{Pool: r.PoolID, GPUs: r.Shape.GPUs(), Window: window, Class: r.Class})
		return 0, nil, err
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// now is the time of the transaction that ctx carries.
func (l *Ledger) now(ctx context.Context) time.Time {
	var now time.Time
	_ = l.store.Read(ctx, func(r Reader) error { // reading the time of a transaction does not fail by itself
		now = r.Now()
		return nil
	})
	return now
}

func (e *explained) reservation(r reservation.Reservation) {
	e.Kind, e.State, e.Reason, e.Degraded, e.Since = "reservation", string(r.State()), r.Reason, r.Degraded, r.CreatedAt
	what := fmt.Sprintf("%d GPUs in %s from %s to %s", r.Shape.GPUs(), e.state.Pool.Name, stamp(r.Window.Start), stamp(r.Window.End))
	boots := e.state.Pool.Boot
	warm := r.Window.Start.Add(-plan.Lead(boots, e.cfg.Policy))
	switch r.State() {
	case reservation.Waitlisted, reservation.AwaitingApproval:
		e.Summary = what + ": no place yet"
		e.step("gives_up", r.Window.End, "it expires if no place was found")
		return
	case reservation.Booked:
		e.Summary = what + ": has its place; nothing is warm yet"
		e.step("warm", warm, "warm-up begins: a boot takes up to %s here, and %s are added", boots.P95().Round(time.Second), e.cfg.Policy.Guard)
	case reservation.Warming:
		e.Since, e.Summary = r.WarmedAt, what+": its nodes are made ready"
		e.nodes(r.Slots, r.Shape.PerNode, "")
	case reservation.Ready:
		e.Since, e.Summary = r.ReadyAt, what+": warm, waiting to be claimed"
	default:
		e.Since, e.Summary = r.EndedAt, fmt.Sprintf("%s: %s", what, r.State())
		return
	}
	e.step("start", r.Window.Start, "its time begins")
	if held := r.Window.Start.Add(e.state.Pool.Timers.WarmHold); r.Source != reservation.FromAgent && held.Before(r.Window.End) {
		e.step("no_show", held, "it ends if nobody has claimed it")
	}
	e.step("end", r.Window.End, "its time is over")
}

// ExplainAllocation explains an allocation that the actor may see.
func (l *Ledger) ExplainAllocation(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var e *explained
	err := l.store.Read(ctx, func(rd Reader) error {
		a, err := rd.Allocation(actor.Scope(), id)
		if err != nil {
			return err
		}
		if e, err = l.explained(rd, actor, id, a.PoolID); err != nil {
			return err
		}
		e.allocation(a)
		e.Wait, err = NewWaits(rd).Allocation(a)
		return err
	})
	if err != nil {
		return Explanation{}, err
	}
	return e.done(), nil
}

func (e *explained) allocation(a allocation.Allocation) {
	e.Kind, e.State, e.Reason, e.Since = "allocation", string(a.State()), a.Reason, a.RequestedAt
	what := fmt.Sprintf("%d GPUs in %s", a.Shape.GPUs(), e.state.Pool.Name)
	switch a.State() {
	case allocation.Pending:
		e.Summary = what + ": has its place; waits for nodes"
		e.nodes(a.Slots, a.Shape.PerNode, a.ID)
		e.step("gives_up", a.Window.End, "it expires if the nodes are not there by then")
	case allocation.Active:
		e.Since, e.Summary = a.ActiveAt, what+": in use"
		e.step("lease_end", a.LeaseUntil, "its lease ends")
	case allocation.Releasing:
		e.Summary = what + ": being given back"
	default:
		e.Since, e.Summary = a.EndedAt, fmt.Sprintf("%s: %s", what, a.State())
	}
}

// ExplainNode explains a node. What will use it is told to operators only: the
// plans of others are theirs.
func (l *Ledger) ExplainNode(ctx context.Context, actor Actor, id string) (Explanation, error) {
	var e *explained
	err := l.store.Read(ctx, func(rd Reader) error {
		n, err := rd.Node(id)
		if err != nil {
			return err
		}
		if e, err = l.explained(rd, actor, id, n.PoolID); err != nil {
			return err
		}
		e.node(n, actor.Role == Operator)
		return nil
	})
	if err != nil {
		return Explanation{}, err
	}
	return e.done(), nil
}

func (e *explained) node(n node.Node, operator bool) {
	e.Kind, e.State, e.Reason, e.Since = "node", string(n.State()), n.Reason, n.RequestedAt
	e.Summary = fmt.Sprintf("slot %d of %s: %s", n.Slot, e.state.Pool.Name, n.State())
	switch {
	case n.Coming():
		e.nodes([]int{n.Slot}, 0, "")
	case n.State() == node.Ready:
		e.Since = n.ReadyAt
	}
	if !operator {
		return
	}
	held := false
	for _, a := range e.state.Allocations {
		if slices.Contains(a.Slots, n.Slot) {
			held = true
			e.step("in_use_until", a.Window.End, "%s uses it", a.ID)
		}
	}
	for _, r := range e.state.Reservations {
		if r.Placed() && slices.Contains(r.Slots, n.Slot) {
			held = held || r.State() != reservation.Booked
			e.step("needed", r.Window.Start, "%s starts on it", r.ID)
		}
	}
	if n.State() == node.Ready && !held {
		e.step("idle_release", n.IdleSince.Add(e.state.Pool.Timers.IdleRelease), "it is removed at the latest, unless something needs it")
	}
}

// nodes tells what the nodes on some slots still lack, for whoever needs so many
// GPUs on each: the allocation of that id, or whoever comes.
func (e *explained) nodes(slots []int, gpus int, holder string) {
	found := map[string][]string{}
	for _, slot := range slots {
		if code, evidence := e.lacks(slot, gpus, holder); code != "" {
			found[code] = append(found[code], evidence...)
		}
	}
	for _, code := range sortedKeys(found) {
		b := Blocker{Code: code, Message: lacking[code], Evidence: found[code]}
		if until := e.state.Pool.BlockedUntil; code == "provider_refused" {
			b.Message = fmt.Sprintf("%s before %s", b.Message, stamp(until))
		}
		e.Blockers = append(e.Blockers, b)
	}
}

// lacking says what each blocker of nodes means.
var lacking = map[string]string{
	"node_missing":     "a node is about to be asked for",
	"node_booting":     "nodes are on their way",
	"node_leaving":     "a node must be gone before the next one can take its slot",
	"devices_held":     "the lease before is not given back yet",
	"provider_refused": "the provider had nothing; no node is asked for",
}

func (e *explained) lacks(slot, gpus int, holder string) (code string, evidence []string) {
	where := fmt.Sprintf("slot %d", slot)
	i := slices.IndexFunc(e.state.Nodes, func(n node.Node) bool { return n.Slot == slot })
	if i < 0 {
		if e.state.Pool.BlockedUntil.After(e.At) {
			return "provider_refused", []string{where}
		}
		return "node_missing", []string{where}
	}
	n := e.state.Nodes[i]
	switch {
	case n.Coming():
		return "node_booting", []string{fmt.Sprintf("%s %s for %s", n.ID, n.State(), e.At.Sub(n.RequestedAt).Round(time.Second))}
	case n.State() != node.Ready:
		return "node_leaving", []string{fmt.Sprintf("%s %s", n.ID, n.State())}
	case e.busy(n.ID, holder)+gpus > len(n.Devices):
		return "devices_held", []string{n.ID}
	default:
		return "", nil
	}
}

// busy counts the devices of a node in hands other than the holder's.
func (e *explained) busy(nodeID, holder string) int {
	busy := 0
	for _, a := range e.state.Allocations {
		for _, h := range a.Devices {
			if h.NodeID == nodeID && a.ID != holder {
				busy++
			}
		}
	}
	return busy
}

// ExplainRequest tells what would become of a request: its effect, or every
// blocker and what would be accepted instead.
func (l *Ledger) ExplainRequest(ctx context.Context, actor Actor, deed Deed) (Explanation, error) {
	e := Explanation{Kind: "request", State: "accepted", Summary: "it would get its GPUs"}
	effect, _, err := l.Rehearse(ctx, actor, deed)
	if errors.As(err, &e.Refused) {
		e.State, e.Summary = "refused", e.Refused.Error()
		return e, l.store.Read(ctx, func(r Reader) error {
			e.At = r.Now()
			return nil
		})
	}
	if err != nil {
		return e, err
	}
	e.At, e.Effect, e.Wait = effect.At, effect, effect.Wait
	if effect.Wait != nil {
		e.State, e.Summary = "waits", "it would get a place, and wait for its GPUs"
	}
	return e, nil
}
