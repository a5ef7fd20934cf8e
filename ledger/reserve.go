package ledger

import (
	"errors"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
)

// MaxGPUs is the largest number of GPUs one request may name.
const MaxGPUs = 100_000

// ReserveRequest asks for a promise.
type ReserveRequest struct {
	Pool        string // id or name; empty: the cheapest of Model that meets Needs and can serve
	Model       string
	Needs       capacity.Needs
	GPUs        int             // 0: those of Layout
	Layout      capacity.Layout // how they are to lie on nodes; zero: on as few as can be
	Window      calendar.Interval
	Range       calendar.TimeRange // instead of Window: the earliest window in it that is accepted
	Workload    capacity.Workload  // empty: online
	Class       reservation.Class  // empty: guaranteed for people, speculative for agents
	Name        string
	Queue       bool // wait for a place when the pool is full
	ReasonCode  string
	Probability float64
	ForJobs     reservation.ForJobs // empty: what is usual for what it is

	ID     string             // derived, for what a schedule materialises
	Origin reservation.Origin // empty: by the actor
	MadeBy string
	Passed PassedPools // by the pools that were tried before
}

// Check returns *InvalidError for a request that nobody could serve, and fills
// in its GPUs.
func (r *ReserveRequest) Check() (err error) {
	if r.GPUs, err = LayOut(r.GPUs, r.Layout); err != nil {
		return err
	}
	switch {
	case r.IsFlexible():
		return r.checkRange()
	case r.Window.Start.IsZero():
		return &InvalidError{Field: "start", Rule: "is missing", Fix: "say when it begins and ends"}
	case r.Window.End.IsZero():
		return &InvalidError{Field: "end", Rule: "is missing", Fix: "say when it begins and ends"}
	case !r.Window.Valid():
		return &InvalidError{Field: "end", Rule: "must be after start"}
	case r.Probability < 0 || r.Probability > 1 || r.Probability != r.Probability:
		return &InvalidError{Field: "probability", Rule: "must be between 0 and 1"}
	}
	return nil
}

// PoolNeeds is what the request needs of a pool.
func (r ReserveRequest) PoolNeeds() PoolNeeds {
	return PoolNeeds{Pool: r.Pool, model: r.Model, needs: r.Needs}
}

// IsFlexible reports whether the request leaves the window open.
func (r ReserveRequest) IsFlexible() bool { return r.Range != (calendar.TimeRange{}) }

func (r ReserveRequest) checkRange() error {
	if r.Window != (calendar.Interval{}) {
		return &InvalidError{Field: "start", Rule: "must be left out with a time range"}
	}
	check := r.Range
	if check.StartNotEarlierThan.IsZero() {
		check.StartNotEarlierThan = time.Unix(0, 0) // it means now
	}
	if wrong, ok := errors.AsType[*calendar.RangeError](check.Check()); ok {
		return &InvalidError{Field: rangeFields[wrong.Field], Rule: wrong.Rule}
	}
	return nil
}

// rangeFields are the fields of a range as requests name them.
var rangeFields = map[string]string{
	"start_time_not_earlier_than": "start_time_not_earlier_than",
	"start_time_not_later_than":   "start_time_not_later_than",
	"end_time_not_earlier_than":   "end_time_not_earlier_than", "end_time_not_later_than": "end_time_not_later_than",
	"min_duration": "min_duration_seconds", "max_duration": "max_duration_seconds",
}

// LockHint names what the request will lock, if it names it.
func (r ReserveRequest) LockHint() *LockHint {
	if r.Pool == "" {
		return nil
	}
	return &LockHint{Pool: r.Pool}
}

// IgnoreMissing returns nil for ErrNotFound, and any other error as it is.
func IgnoreMissing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// FormatTime renders a time for a message, always in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format("Mon 15:04:05") + "Z" }

// sameWeek is how far a time may be away for its weekday to name it: a day less
// than the next one of that name.
const sameWeek = 6 * 24 * time.Hour

// FormatTimeSeen renders a time for a message that is first read at another: by its
// weekday where that can mean no other day, else with its date.
func FormatTimeSeen(t, seen time.Time) string {
	if t.Sub(seen).Abs() < sameWeek {
		return FormatTime(t)
	}
	return t.UTC().Format("Mon 2006-01-02 15:04:05") + "Z"
}
