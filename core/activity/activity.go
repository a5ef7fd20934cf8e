// Package activity tells when GPUs did something and when they did not, from what was seen of
// them at moments. What nobody looked at is neither: a GPU is idle only where it was seen to be.
//
// A series of looks is kept as stretches. A GPU's last stretch is open, and reaches to the
// last look; so a look that says nothing new changes nothing but its own time.
package activity

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
)

const (
	// MaxGap is the longest time between two looks in which a GPU counts as looked at.
	MaxGap = 90 * time.Second
	// Grain is how long a GPU does nothing until that is idleness: a pause that is
	// shorter is a part of its use.
	Grain = 5 * time.Minute
)

// Look is what is seen of one GPU. It is about all the time since the look before.
type Look struct {
	GPU  string // its UUID
	Used bool   // it did something
}

// Stretch is a time in which a GPU was looked at all along, and was idle or in use.
type Stretch struct {
	GPU string
	calendar.Interval
	Idle bool
}

// Open is the last stretch of a GPU, which the next look prolongs or ends.
type Open struct {
	GPU   string    `json:"gpu"`
	Since time.Time `json:"since"`
	Idle  bool      `json:"idle,omitempty"`
	// Quiet is since when a GPU in use has done nothing; zero: it does something.
	Quiet time.Time `json:"quiet,omitzero"`
}

// until is the stretch as it was at a look.
func (o Open) until(seen time.Time) Stretch {
	return Stretch{GPU: o.GPU, Interval: calendar.Interval{Start: o.Since, End: seen}, Idle: o.Idle}
}

// Record adds the looks of one moment to the open stretches of a node's GPUs, whose last look
// was at seen; zero: there was none. It returns the stretches that are open now, in the order of
// the looks, and those that have ended. A GPU without a look, such as one that does
// not tell what it does, has no open stretch afterwards; of one that is named twice the first
// look counts.
func Record(open []Open, seen time.Time, looks []Look, now time.Time) (after []Open, ended []Stretch) {
	looks = firstOfEach(looks)
	if gap := now.Sub(seen); seen.IsZero() || gap < 0 || gap > MaxGap {
		for _, o := range open {
			ended = appendStretch(ended, o.until(seen))
		}
		return begin(looks, calendar.Later(seen, now)), ended
	}
	before := make(map[string]Open, len(open))
	for _, o := range open {
		before[o.GPU] = o
	}
	for _, l := range looks {
		o, known := before[l.GPU]
		delete(before, l.GPU)
		if !known {
			after = append(after, begin([]Look{l}, now)...)
			continue
		}
		next, end := o.look(l.Used, seen, now)
		after, ended = append(after, next), appendStretch(ended, end)
	}
	for _, o := range open {
		if _, left := before[o.GPU]; left {
			ended = appendStretch(ended, o.until(seen))
		}
	}
	return after, ended
}

func firstOfEach(looks []Look) []Look {
	named := make(map[string]bool, len(looks))
	var first []Look
	for _, l := range looks {
		if !named[l.GPU] {
			named[l.GPU], first = true, append(first, l)
		}
	}
	return first
}

// begin are the open stretches of GPUs that are looked at for the first time.
func begin(looks []Look, now time.Time) []Open {
	var all []Open
	for _, l := range looks {
		o := Open{GPU: l.GPU, Since: now}
		if !l.Used {
			o.Quiet = now
		}
		all = append(all, o)
	}
	return all
}

// look is the stretch after a look, and the one that ended with it: empty if none did.
func (o Open) look(used bool, seen, now time.Time) (Open, Stretch) {
	switch {
	case used && o.Idle:
		return Open{GPU: o.GPU, Since: seen}, o.until(seen)
	case used:
		o.Quiet = time.Time{}
	case !o.Idle && o.Quiet.IsZero():
		o.Quiet = seen
	}
	if !o.Idle && !o.Quiet.IsZero() && now.Sub(o.Quiet) >= Grain {
		return Open{GPU: o.GPU, Since: o.Quiet, Idle: true}, o.until(o.Quiet)
	}
	return o, Stretch{}
}

func appendStretch(all []Stretch, s Stretch) []Stretch {
	if !s.Start.Before(s.End) {
		return all
	}
	return append(all, s)
}

// Until are the open stretches as they were at their last look.
func Until(open []Open, seen time.Time) []Stretch {
	var all []Stretch
	for _, o := range open {
		all = appendStretch(all, o.until(seen))
	}
	return all
}

// IdleSince returns since when all of some GPUs have been idle; false where one is not, or was
// not looked at.
func IdleSince(open []Open, gpus []string) (since time.Time, idle bool) {
	byGPU := make(map[string]Open, len(open))
	for _, o := range open {
		byGPU[o.GPU] = o
	}
	for _, gpu := range gpus {
		o, known := byGPU[gpu]
		if !known || !o.Idle {
			return time.Time{}, false
		}
		since = calendar.Later(since, o.Since)
	}
	return since, len(gpus) > 0
}

// Split says how much of a time one GPU was used and idle, by its stretches, which do not
// overlap. What is left of it was not observed.
func Split(stretches []Stretch, held calendar.Interval) (used, idle time.Duration) {
	for _, s := range stretches {
		start, end := calendar.Later(s.Start, held.Start), calendar.Earlier(s.End, held.End)
		switch {
		case !start.Before(end):
		case s.Idle:
			idle += end.Sub(start)
		default:
			used += end.Sub(start)
		}
	}
	return used, idle
}

// UsedUntil is until when a GPU was used while it was held: the end of that time, less the idleness that was seen at
// its end. Where that is all of it, nobody used the GPU, and it is when it began to be held. The stretches are in the
// order of time.
func UsedUntil(stretches []Stretch, held calendar.Interval) time.Time {
	until := held.End
	next, _ := slices.BinarySearchFunc(stretches, held.End, func(s Stretch, t time.Time) int { return s.Start.Compare(t) })
	for _, s := range slices.Backward(stretches[:next]) { // those from then on are of whoever held it next
		if !s.Idle || until.Sub(s.End) > MaxGap {
			break
		}
		until = calendar.Later(s.Start, held.Start)
	}
	if until.Before(held.End) && until.Sub(held.Start) <= MaxGap {
		return held.Start // the first look at it came a moment after
	}
	return until
}
