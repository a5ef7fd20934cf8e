// Package evidence decides how much weight outside evidence has: what a log
// line, a calendar or a language model announced, in addition to what
// statistics expect.
//
// Weight is earned. TrackRecords keeps a track record for each source and reason, over
// all tenants and for each of them, and it counts uplift: waits that statistics
// alone would have left and that the record would have spared. Messages that are
// right only because the tenant is always busy earn nothing. Three fences hold
// whatever a source says. The gate accepts a record only if the waits that it is
// likely to save are worth more than the idling. A source whose last closes did
// harm is demoted and is listened to again only after it would have helped for as
// long. And a budget bounds what its mistakes can cost in all: it may lose what it
// has earned lately and a stated allowance, and not one GPU-hour more.
//
// A record is judged whether it was acted on or not, since what it would have
// saved can be seen afterwards; so listening again needs no costly trials.
// Everything is pure: times are arguments, and the same calls give the same records.
package evidence

import (
	"fmt"
	"math"
	"time"
)

// Record is one expectation that somebody outside of the statistics stated: a
// need for GPUs will begin within [Start, End].
type Record struct {
	Source, Reason string    // who says it and why: names, see Check
	Tenant         string    // whose need
	Sent           time.Time // when it became known
	Start, End     time.Time // when the need may begin
	Low, Mid, High int       // GPUs if the need comes
	Probability    float64   // as stated by the source, 0 to 1
}

// The limits of a Record.
const (
	MaxGPUs   = 1 << 16
	maxName   = 64
	maxTenant = 256
	maxSpan   = 7 * 24 * time.Hour
)

// RecordError says which field of a record cannot be believed.
type RecordError struct{ Field, Problem string }

func (e *RecordError) Error() string { return fmt.Sprintf("record: %s: %s", e.Field, e.Problem) }

// Check returns a *RecordError if the record is not one: numbers out of order or
// out of bounds, a time that is not a time, or names other than up to 64 letters,
// digits and any of "_-.". It does not say whether the record is true.
func (r Record) Check() error {
	switch {
	case !isName(r.Source):
		return &RecordError{"source", "want up to 64 letters, digits and _-."}
	case !isName(r.Reason):
		return &RecordError{"reason", "want up to 64 letters, digits and _-."}
	case len(r.Tenant) > maxTenant:
		return &RecordError{"tenant", "want at most 256 bytes"}
	case r.Low < 0 || r.Low > r.Mid || r.Mid > r.High || r.Mid < 1 || r.High > MaxGPUs:
		return &RecordError{"gpus", fmt.Sprintf("want 0 <= low <= mid <= high <= %d and mid at least 1", MaxGPUs)}
	case !(r.Probability >= 0 && r.Probability <= 1):
		return &RecordError{"probability", "want 0 to 1"}
	case !isPlausible(r.Sent) || !isPlausible(r.Start) || !isPlausible(r.End):
		return &RecordError{"time", "want a year from 1970 to 2200"}
	case r.End.Before(r.Start) || r.End.Sub(r.Start) > maxSpan:
		return &RecordError{"end", "want start to start + 7 days"}
	default:
		return nil
	}
}

func isPlausible(t time.Time) bool { y := t.UTC().Year(); return y >= 1970 && y <= 2200 }

func isName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for _, c := range []byte(s) {
		ok := c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !ok {
			return false
		}
	}
	return true
}

// kindKey is the key of a track record: names hold no slash.
func (r Record) kindKey() string { return r.Source + "/" + r.Reason }

// sizes is how many GPU counts of one record are judged, relative to its Mid.
const sizes = 3

// multiples are those counts: sources exaggerate and understate, and which of
// the three pays is learned for each kind.
var multiples = [sizes]float64{0.5, 1, 2}

// Held returns the GPUs that the i-th judged size of the record means: half of
// Mid, Mid and twice Mid, for i of 0, 1 and 2.
func (r Record) Held(i int) int {
	return min(MaxGPUs, max(1, int(math.Ceil(float64(r.Mid)*multiples[i]))))
}

func clampFinite(x, low, high float64) float64 {
	if math.IsNaN(x) {
		return low
	}
	return math.Max(low, math.Min(high, x))
}

func areFinite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
