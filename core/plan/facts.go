package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Facts is everything that a decision was made from. Which fields count, and
// what each means, depends on the kind of action; the others are zero. Times are
// UTC, durations nanoseconds.
type Facts struct {
	At           time.Time       `json:"at"`                     // when it was decided
	State        string          `json:"state,omitempty"`        // of the subject
	Source       string          `json:"source,omitempty"`       // of the reservation
	Start        time.Time       `json:"start,omitzero"`         // of the window
	End          time.Time       `json:"end,omitzero"`           // of the window
	BookedAt     time.Time       `json:"booked_at,omitzero"`     // when the reservation was given its place
	Due          time.Time       `json:"due,omitzero"`           // when a hold, a lease or a boot is over
	ETA          time.Time       `json:"eta,omitzero"`           // when its nodes are likely to be ready, at the median
	Lead         time.Duration   `json:"lead_p95_ns,omitempty"`  // 95th percentile of boots
	Guard        time.Duration   `json:"guard_ns,omitempty"`     // added to the lead
	Boot50       time.Duration   `json:"boot_p50_ns,omitempty"`  // median of boots
	Readiness    string          `json:"standing,omitempty"`     // how far its nodes are: missing, stuck, coming, ready
	Paused       bool            `json:"paused,omitempty"`       // speculation of its organization is paused
	Degraded     bool            `json:"degraded,omitempty"`     // it was flagged before
	Condition    string          `json:"condition,omitempty"`    // why it was flagged
	Divided      bool            `json:"divided,omitempty"`      // somebody has claimed a part of what was reserved
	Outside      bool            `json:"outside,omitempty"`      // it lies on slots that the pool no longer has
	Taken        bool            `json:"taken,omitempty"`        // the cluster has work on its nodes, or gives them none
	From         []int           `json:"from,omitempty"`         // its slots
	To           []int           `json:"to,omitempty"`           // better ones
	Cost         int             `json:"cost,omitempty"`         // how far From is from usable
	CostAfter    int             `json:"cost_after,omitempty"`   // how far To is
	Sooner       time.Duration   `json:"sooner_ns,omitempty"`    // what the last node of To is ahead of that of From
	For          string          `json:"for,omitempty"`          // what, or whom, it is done for
	FreeGPUs     int             `json:"free_gpus,omitempty"`    // on the fullest of its nodes
	NeedGPUs     int             `json:"need_gpus,omitempty"`    // on each of its nodes
	Share        float64         `json:"share,omitempty"`        // fair share of its organization
	Behind       string          `json:"behind,omitempty"`       // who waits before it for the same time
	Needed       bool            `json:"needed,omitempty"`       // something uses the node, or will very soon
	Held         bool            `json:"held,omitempty"`         // somebody works on the node
	Kept         bool            `json:"kept,omitempty"`         // an operator keeps the node for inspection
	Usable       int             `json:"usable,omitempty"`       // nodes that are ready or on their way
	Minimum      int             `json:"minimum,omitempty"`      // nodes that the pool keeps at all times
	Coming       int             `json:"coming,omitempty"`       // nodes on their way
	Breaker      learned.Breaker `json:"breaker,omitempty"`      // of the pool
	BlockedUntil time.Time       `json:"blocked_until,omitzero"` // nothing is asked of the provider before
	Unfit        string          `json:"unfit,omitempty"`        // the fault for which nothing is asked for any more
	Failures     int             `json:"failures,omitempty"`     // nodes in a row that never became ready
	Odds         float64         `json:"odds,omitempty"`         // that the provider has a node
	Recent       int             `json:"recent,omitempty"`       // creates, or removals, in the policy's window
	Cap          int             `json:"cap,omitempty"`          // of them
	Keep         *KeepFacts      `json:"keep,omitempty"`         // of an idle node
	IdleSince    time.Time       `json:"idle_since,omitzero"`    // since when its GPUs have been idle
	IdleSeen     time.Time       `json:"idle_seen,omitzero"`     // until when they were seen to be
	WarnedAt     time.Time       `json:"warned_at,omitzero"`     // when its holder was last told so
}

// Judge decides about one action from its facts: whether it is taken, and the
// code of the reason. Compute takes exactly those that Judge takes, so a stored
// decision can be made again from its facts. An unknown kind is never taken.
func Judge(kind Kind, f Facts) (does bool, reason string) {
	rule, ok := rules[kind]
	if !ok {
		return false, ""
	}
	reason = rule(f)
	return reason != "", reason
}

// rules give the reason for an action, or nothing.
var rules = map[Kind]func(Facts) string{
	BootNode: judgeBoot,
	AbandonNode: func(f Facts) string {
		return reasonIf(!f.Needed && (f.Outside || f.Usable > f.Minimum),
			ReasonUnused)
	},
	DrainNode:  judgeDrain,
	RetireNode: judgeRetire,
	WarmReservation: func(f Facts) string {
		return reasonIf(!f.Paused && f.hasCome(f.Start.Add(-f.Lead-f.Guard)),
			ReasonLead)
	},
	ReadyReservation:   func(f Facts) string { return reasonIf(f.Readiness == ready.String(), ReasonNodesReady) },
	UnreadyReservation: judgeUnready,
	DegradeReservation: judgeDegrade,
	RestoreReservation: func(f Facts) string {
		return reasonIf(f.Degraded && f.Condition == ReasonShrunk && !f.Outside, ReasonRestored)
	},
	ExpireReservation: judgeExpiry,
	FailReservation:   func(f Facts) string { return reasonIf(f.hasCome(f.End), ReasonNeverReady) },
	MoveReservation:   judgeMove,
	MoveAllocation:    judgeMove,
	RetryWaitlisted:   func(f Facts) string { return reasonIf(f.Behind == "", ReasonTurn) },
	ActivateAllocation: func(f Facts) string {
		return reasonIf(f.Readiness == ready.String() && f.FreeGPUs >= f.NeedGPUs, ReasonNodesReady)
	},
	ExpireAllocation: func(f Facts) string { return reasonIf(f.hasCome(f.Due), f.For) },
	WarnIdle:         func(f Facts) string { return reasonIf(!f.WarnedAt.After(f.IdleSince), judgeIdle(f)) },
	ReclaimIdle:      func(f Facts) string { return reasonIf(f.WarnedAt.After(f.IdleSince), judgeIdle(f)) },
	FailAllocation:   func(f Facts) string { return reasonIf(f.Readiness != ready.String(), ReasonNodeLost) },
}

func reasonIf(does bool, reason string) string {
	if does {
		return reason
	}
	return ""
}

func (f Facts) hasCome(t time.Time) bool { return !t.After(f.At) }

// judgeBoot asks for a node if the provider may be asked: not during a block, one
// at a time while the breaker is half open, and never more than the cap.
func judgeBoot(f Facts) string {
	return reasonIf(f.Readiness == missing.String() && len(f.withheldBy()) == 0, f.For)
}

func judgeDrain(f Facts) string {
	if f.Outside {
		return reasonIf(f.Recent < f.Cap, ReasonShrunk)
	}
	if f.Needed || f.Keep == nil || f.Usable <= f.Minimum || f.Recent >= f.Cap {
		return ""
	}
	v := Keep(*f.Keep)
	return reasonIf(!v.Keep, v.Reason)
}

func judgeUnready(f Facts) string {
	if f.Paused {
		return ReasonPaused
	}
	if f.Outside {
		return ReasonShrunk
	}
	if f.Taken {
		return reasonIf(f.Readiness != ready.String(), ReasonNodeTaken)
	}
	return reasonIf(f.Readiness != ready.String(), ReasonNodeLost)
}

// judgeDegrade flags a promise that has no place, or will be late although it was
// made before its lead began: whoever asks for GPUs sooner than a node can boot
// was never promised more.
func judgeDegrade(f Facts) string {
	if f.Degraded {
		return ""
	}
	if f.Outside {
		return ReasonShrunk
	}
	late := f.Readiness != ready.String() && !f.ETA.Before(f.Start) && !f.BookedAt.After(f.Start.Add(-f.Lead))
	return reasonIf(late, ReasonLate)
}

// judgeExpiry ends what nobody came for. An agent asks for head room during its
// window; a person asks for GPUs at its start, and is a no-show some time after.
// What is left of a reservation after somebody came stays until its window is over.
func judgeExpiry(f Facts) string {
	over := f.hasCome(f.End)
	switch reservation.State(f.State) {
	case reservation.Ready:
		if f.Divided {
			return reasonIf(over, ReasonWindowEnded)
		}
		hold := f.Source != string(reservation.FromAgent) && f.Readiness == ready.String() && f.hasCome(f.Due)
		return reasonIf(over || hold, ReasonNoShow)
	case reservation.Booked, reservation.Warming:
		return reasonIf(over && f.Paused, ReasonPaused)
	default:
		return reasonIf(over, ReasonWindowEnded)
	}
}

func judgeMove(f Facts) string {
	switch {
	case f.For != "":
		return ReasonRepack
	case f.CostAfter == f.Cost && f.Sooner > 0:
		return ReasonHandOver
	case f.CostAfter >= f.Cost:
		return ""
	case f.Outside:
		return ReasonShrunk
	default:
		return ReasonHandOver
	}
}

func judgeRetire(f Facts) string {
	switch node.State(f.State) {
	case node.Draining:
		return reasonIf(!f.Held, ReasonEmpty)
	case node.Lost:
		return ReasonNodeLost
	case node.Quarantined:
		return reasonIf(!f.Held && !f.Kept, ReasonUnhealthy)
	case node.Booting:
		return reasonIf(f.hasCome(f.Due), ReasonBootTimeout)
	default:
		return ""
	}
}
