package scheduler

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/placement"
)

// signature is all that decides whether a job can start at a moment.
type signature struct {
	request placement.Request
	limit   time.Duration
}

// classKey is all that, beside its signature, decides where a job stands in the order, but for when it came.
type classKey struct {
	userKey
	class     string
	group     Group
	predicted time.Duration // rounded, so that jobs share lines
	band      int
}

// waiter is a job that waits in a line.
type waiter struct {
	Job
	line    *line
	promise *Promise // nil: none
}

// standing is what of a job decides where it stands in its line's order.
type standing struct {
	eligible int64 // in nanoseconds since 1970
	attained time.Duration
}

func standingOf(j *Job) standing { return standing{j.Eligible.UnixNano(), j.Attained} }

// line is the jobs of one class in the order in which they came, with what all of their
// keys have in common.
type line struct {
	// A cycle looks at these of each line, and most of its time is waiting for memory: they lie together, and say of
	// the first job what there is to know.
	user     *user
	first    *waiter // of the jobs
	stands   standing
	promised int // of the jobs
	next     int // the first of the jobs that a cycle has not looked at
	major    int64
	places   int64 // major, and the band
	overdue  time.Duration
	gpus     int     // that each job asks for
	asked    float64 // GPU-seconds that are predicted, softened
	jobs     []*waiter
	pile     *pile
	at       int // in the lines of the pile
	classKey
}

// pile is the lines of one signature: when one of them cannot start, none can.
type pile struct {
	signature
	lines []*line
	byKey map[classKey]*line
	heads places // of a cycle: the lines in which somebody is left, by who that is
}

func compareJobs(a, b *waiter) int {
	return cmp.Or(a.Eligible.Compare(b.Eligible), cmp.Compare(a.ID, b.ID))
}

func signatureOf(j *Job) signature { return signature{j.Request, j.MaxRuntime} }

func (s *Scheduler) classOf(j *Job) classKey {
	return classKey{userKey: userKey{j.Tenant, j.User}, class: j.Class, group: j.Group,
		predicted: roundUp(j.Predicted), band: s.policy.band(j.Attained, j.Request.GPUs())}
}

// lineOf returns a line of jobs of a class that ask for so many GPUs each, in which nobody waits yet. No pile has it.
func (s *Scheduler) lineOf(key classKey, gpus int) *line {
	major := -int64(s.policy.Classes[key.class].Level) * levelWidth
	return &line{classKey: key, gpus: gpus, user: s.accounts.userOf(key.userKey), major: major,
		places: major + int64(key.band), overdue: s.policy.overdue(key.class),
		asked: (key.predicted + s.policy.Softening).Seconds() * float64(max(gpus, 1))}
}

// roundUp rounds to an eighth of a power of two of seconds, upwards.
func roundUp(d time.Duration) time.Duration {
	seconds := uint64((d + time.Second - 1) / time.Second)
	shift := max(bits.Len64(seconds)-4, 0)
	return time.Duration((seconds+1<<shift-1)>>shift<<shift) * time.Second
}

// wait puts a job into its line.
func (s *Scheduler) wait(w *waiter) {
	p := s.pileOf(signatureOf(&w.Job))
	key := s.classOf(&w.Job)
	l := p.byKey[key]
	if l == nil {
		l = s.lineOf(key, w.Request.GPUs())
		l.pile, l.at = p, len(p.lines)
		p.lines, p.byKey[key] = append(p.lines, l), l
	}
	w.line = l
	at, _ := slices.BinarySearchFunc(l.jobs, w, compareJobs)
	l.jobs = slices.Insert(l.jobs, at, w)
	l.noteFirst()
	s.jobs[w.ID] = w
	l.user.waiting++
}

func (s *Scheduler) pileOf(is signature) *pile {
	p := s.piles[is]
	if p == nil {
		p = &pile{signature: is, byKey: map[classKey]*line{}}
		s.piles[is] = p
	}
	return p
}

func (l *line) noteFirst() {
	if len(l.jobs) > 0 && l.jobs[0] != l.first {
		l.first, l.stands = l.jobs[0], standingOf(&l.jobs[0].Job)
	}
}

// find is where a job is in its line. Who starts is mostly the one that is looked at, and then nobody is compared.
func (l *line) find(w *waiter) (at int, found bool) {
	if l.next < len(l.jobs) && l.jobs[l.next] == w {
		return l.next, true
	}
	return slices.BinarySearchFunc(l.jobs, w, compareJobs)
}

// leave takes a job out of its line.
func (s *Scheduler) leave(w *waiter) {
	l := w.line
	if at, found := l.find(w); found {
		l.jobs = slices.Delete(l.jobs, at, at+1)
		l.noteFirst()
		if at < l.next {
			l.next--
		}
	}
	delete(s.jobs, w.ID)
	l.user.waiting--
	if len(l.jobs) > 0 {
		return
	}
	if l.pile.remove(l); len(l.pile.lines) == 0 {
		delete(s.piles, l.pile.signature)
	}
}

// remove takes a line out of the pile.
func (p *pile) remove(l *line) {
	delete(p.byKey, l.classKey)
	last := len(p.lines) - 1
	p.lines[l.at] = p.lines[last]
	p.lines[l.at].at = l.at
	p.lines[last] = nil
	p.lines = p.lines[:last]
}
