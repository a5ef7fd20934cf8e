package admission

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Code names a blocker.
type Code string

// The blockers.
const (
	WindowInPast          Code = "window_in_past"
	WindowTooLong         Code = "window_too_long"
	NoMatchingHardware    Code = "no_matching_hardware" // the pool could never hold it
	CapacityExhausted     Code = "capacity_exhausted"
	WorkloadShareExceeded Code = "workload_share_exceeded" // of a split pool
	QuotaExceeded         Code = "quota_exceeded"
	CohortExhausted       Code = "cohort_exhausted"   // what the cohort lends is in use
	GPUHoursExceeded      Code = "gpu_hours_exceeded" // of a period
	SpendingExceeded      Code = "spending_exceeded"  // money of a period
	BudgetExceeded        Code = "budget_exceeded"    // of speculation
	KeyCapExceeded        Code = "key_cap_exceeded"
	UserCapExceeded       Code = "user_cap_exceeded"
	PrewarmPaused         Code = "prewarm_paused"
	LeadTimeTooShort      Code = "lead_time_too_short" // a speculative reservation would be over before a node is up
	ClaimTooEarly         Code = "claim_too_early"     // the reservation's window is too far off
	ClaimTooLong          Code = "claim_too_long"      // the lease would be longer than what was reserved
)

// Reason is one blocker with its numbers. Unit says what Limit and Asked count.
type Reason struct {
	Code    Code
	Message string
	Unit    string
	Limit   int64
	Asked   int64
	At      time.Time `json:",omitzero"` // when it would be exceeded first; zero: it has no time
	// ClearsAt is the first start known at which it would not stand in the way of
	// the same shape and length; zero: not known, or never.
	ClearsAt time.Time `json:",omitzero"`
}

// startGrace forgives the time a request spends on its way.
const startGrace = time.Minute

// listBlockers lists everything that is in the way of the request but room.
func listBlockers(r *Request, f *Facts) []Reason {
	reasons := windowReasons(r, f)
	if !f.Pool.everHolds(r.Shape) {
		reasons = append(reasons, noHardware(r, &f.Pool))
	}
	return append(reasons, limitBlockers(r, f)...)
}

// limitBlockers lists the limits and policies that are in the way, whatever the
// window and the pool's size.
func limitBlockers(r *Request, f *Facts) []Reason {
	var reasons []Reason
	if r.Class == reservation.Speculative {
		reasons = pauseReasons(reasons, f)
	}
	for _, v := range f.Limits.Violations() {
		reasons = append(reasons, r.dateReason(limitReason(v), v))
	}
	reasons = capReasons(reasons, r, KeyCapExceeded, "key", &f.Key)
	reasons = capReasons(reasons, r, UserCapExceeded, "user", &f.User)
	for i := range f.Makers {
		reasons = capReasons(reasons, r, KeyCapExceeded, "key's maker", &f.Makers[i])
	}
	if s := &f.Split; s.exceedsShare(r.Shape.GPUs()) && !s.Borrow {
		reasons = append(reasons, noShare(r, f))
	}
	return reasons
}

// pauseReasons says what is paused, until when, and why. Who paused has the say.
func pauseReasons(reasons []Reason, f *Facts) []Reason {
	if f.Pool.Paused {
		reasons = append(reasons, Reason{Code: PrewarmPaused,
			Message: fmt.Sprintf("speculative pre-warming is paused in pool %s", f.Pool.Name)})
	}
	if f.Pause == nil {
		return reasons
	}
	whose, until, why := "your organization", "until somebody resumes it", ""
	if f.Pause.Everybody {
		whose = "everybody"
	}
	if !f.Pause.Until.IsZero() {
		until = "until " + f.Pause.Until.UTC().Format(time.RFC3339)
	}
	if f.Pause.Reason != "" {
		why = ": " + f.Pause.Reason
	}
	return append(reasons, Reason{Code: PrewarmPaused, ClearsAt: f.Pause.Until,
		Message: fmt.Sprintf("speculative pre-warming is paused for %s %s%s", whose, until, why)})
}

func windowReasons(r *Request, f *Facts) []Reason {
	var reasons []Reason
	if message, ok := whyPast(r, f); ok {
		reasons = append(reasons, Reason{Code: WindowInPast, Unit: "seconds", Message: message,
			Asked: int64(f.Window.Start.Sub(f.Now) / time.Second)})
	}
	if limit := f.Pool.MaxLease; f.Window.Length() > limit {
		reasons = append(reasons, overLimit(WindowTooLong, "seconds", int64(limit/time.Second),
			int64(f.Window.Length()/time.Second),
			fmt.Sprintf("pool %s allows windows of at most %s", f.Pool.Name, phrase.Length(limit))))
	}
	return reasons
}

// whyPast says why no part of the window can be booked any more.
func whyPast(r *Request, f *Facts) (string, bool) {
	switch {
	case !f.Window.Valid():
		return "the window ends before it begins", true
	case r.Now:
		return "", false
	case f.Window.Start.Before(f.Now.Add(-startGrace)):
		return fmt.Sprintf("the window starts %s in the past", phrase.Span(f.Now.Sub(f.Window.Start))), true
	default:
		return "the window is over", !f.Window.End.After(f.Now)
	}
}

// capReasons tells of the caps of the key that asks, or of the one that holds
// what is prolonged: what is added counts there.
func capReasons(reasons []Reason, r *Request, code Code, who string, f *CapFacts) []Reason {
	if !f.Capped {
		return reasons
	}
	whose := "this "
	if r.Prolongs {
		whose = "the lease's "
	}
	for _, v := range f.Violations() {
		reasons = append(reasons, r.dateReason(capReason(code, whose+who, v), v))
	}
	return reasons
}

// dateReason adds in which period it is that a limit would be exceeded, where that is
// not the one of the window.
func (r *Request) dateReason(reason Reason, v quota.Violation) Reason {
	if r.Prolongs && v.Period != "" {
		reason.Message += fmt.Sprintf(" (a lease counts in the %s in which it began: %s)", v.Period,
			r.Since.UTC().Format(time.DateOnly))
	}
	return reason
}

func overLimit(c Code, unit string, limit, asked int64, message string) Reason {
	return Reason{Code: c, Unit: unit, Limit: limit, Asked: asked, Message: message}
}

func noHardware(r *Request, p *PoolFacts) Reason {
	return overLimit(NoMatchingHardware, "gpus", int64(p.PerNode*p.MaxNodes), int64(r.Shape.GPUs()),
		fmt.Sprintf("pool %s has at most %s of %s; %s never fits", p.Name, phrase.Count(p.MaxNodes, "node"),
			phrase.Count(p.PerNode, "GPU"), r.Shape))
}

func noShare(r *Request, f *Facts) Reason {
	asked := f.Split.Used + r.Shape.GPUs()
	reason := overLimit(WorkloadShareExceeded, "gpus", int64(f.Split.Share), int64(asked),
		fmt.Sprintf("%s work may have %s of pool %s; with this it would have %d", f.Split.Workload,
			phrase.Count(f.Split.Share, "GPU"), f.Pool.Name, asked))
	reason.At, reason.ClearsAt = f.Window.Start, f.Split.ClearsAt
	return reason
}

func noCapacity(r *Request, f *Facts) Reason {
	reason := overLimit(CapacityExhausted, "gpus", int64(f.Room.Free), int64(r.Shape.GPUs()),
		fmt.Sprintf("pool %s has %s free during the whole window; %s has no place", f.Pool.Name,
			phrase.Count(f.Room.Free, "GPU"), r.Shape))
	reason.At, reason.ClearsAt = f.Window.Start, f.Room.Earliest
	return reason
}

// poolFacts are those of a pool.
func poolFacts(p *capacity.Pool) PoolFacts {
	return PoolFacts{ID: p.ID, Name: p.Name, PerNode: p.PerNode, MaxNodes: p.MaxNodes, MaxLease: p.Timers.MaxLease,
		Paused: p.Paused}
}
