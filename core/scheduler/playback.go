package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// Playback is what a scheduler is expected to see from now on, if nobody else comes.
type Playback struct {
	Ends   map[string]time.Time // of what runs; what is not in it ends at its Until
	Unsure map[string]bool      // jobs of whose ends nothing is known but their limits
	Booked []placement.Promised // what others have reserved, under ids that no job has
	// Begin says when a job that is given these GPUs at an instant begins to run, and when it has ended.
	Begin func(id string, spots placement.Placement, at time.Time) (begins, ends time.Time)
	// Refused reports whether a job is known not to start now, whatever is free.
	Refused func(id string) bool
	Wanted  string // nothing is played after its start; empty: until all have started
	Cycles  int    // how many there are at most
}

// Foreseen is a start that a playback came to.
type Foreseen struct {
	At     time.Time // when the job begins to run
	Waited bool      // for the end of something
	Unsure bool      // something ended before it of whose end nothing is known
}

// playing is a playback that goes on.
type playing struct {
	Playback
	s    *Scheduler
	now  time.Time
	ends *queue.Queue // of what runs, and of what is booked
	out  map[string]Foreseen
	last Foreseen // what the next starts have in common
}

// Play plays the scheduler's cycles forward, with jobs that end as is expected, and returns the starts that it
// came to, by job. Nobody is told to leave in it. It uses the scheduler up, whose state is then that of a future
// which need not come.
func (s *Scheduler) Play(p Playback, now time.Time) map[string]Foreseen {
	s.policy.Preemption.Enabled = false
	x := playing{Playback: p, s: s, now: now, ends: queue.New(math.MaxInt32), out: map[string]Foreseen{}}
	x.noteEnds()
	for cycle := range p.Cycles {
		if !x.decide(cycle == 0) || !x.advance() {
			break
		}
	}
	return x.out
}

// noteEnds notes what is on the nodes, and until when.
func (x *playing) noteEnds() {
	for id, r := range x.s.running {
		end, known := x.Ends[id]
		if !known {
			end = r.Until
		}
		x.endAt(id, end)
	}
	for _, b := range x.Booked {
		if x.s.Book(b) {
			x.endAt(b.ID, b.Until)
		}
	}
}

// endAt has something end at an instant that is still to come. Ids are unique, so that the queue takes each.
func (x *playing) endAt(id string, at time.Time) {
	if !at.After(x.now) {
		at = x.now.Add(time.Second)
	}
	_ = x.ends.Push(id, queue.Key{Major: at.UnixNano()})
}

// decide runs a cycle. It returns false once nothing more is wanted.
func (x *playing) decide(isFirst bool) (more bool) {
	for {
		refused := false
		for _, start := range x.s.Cycle(x.now).Starts {
			if isFirst && x.Refused(start.Job) {
				x.s.Finish(start.Job, x.now)
				refused = true
				continue
			}
			begins, ends := x.Begin(start.Job, start.Spots, x.now)
			x.endAt(start.Job, ends)
			is := x.last
			is.At = begins
			x.out[start.Job] = is
		}
		if !refused {
			break
		}
	}
	_, found := x.out[x.Wanted]
	return !found && x.s.Waiting() > 0
}

// advance goes to the next instant at which something ends or somebody may start, and ends what has. It returns
// false where there is none.
func (x *playing) advance() bool {
	next := int64(math.MaxInt64)
	if _, k, ok := x.ends.Peek(); ok {
		next = k.Major + x.blur(k.Major)
	}
	if _, k, ok := x.s.later.Peek(); ok {
		next = min(next, k.Major)
	}
	if next == math.MaxInt64 {
		return false
	}
	x.now = time.Unix(0, next).UTC()
	for id, k, ok := x.ends.Peek(); ok && k.Major <= next; id, k, ok = x.ends.Peek() {
		x.ends.Pop()
		x.last.Waited = true
		x.last.Unsure = x.last.Unsure || x.Unsure[id]
		if !x.s.Finish(id, x.now) {
			x.s.cluster.Withdraw(id)
			delete(x.s.booked, id)
		}
	}
	return true
}

// blur is how much later than it ends something may be seen to: a fiftieth of the time until then, so that what
// ends at about the same time takes one cycle.
func (x *playing) blur(end int64) int64 { return max(end-x.now.UnixNano(), 0) / blurPart }

const blurPart = 50
