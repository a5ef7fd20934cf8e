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

// classKey is all that decides where a job stands in the order, but for when it came.
type classKey struct {
	signature
	tenant, class string
	predicted     time.Duration // rounded, so that jobs share lines
	band          int
}

// line is the jobs of one class in the order in which they came.
type line struct {
	classKey
	tenant *tenant
	jobs   []*Job
}

func compareJobs(a, b *Job) int {
	return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
}

func (l *line) add(j *Job) {
	at, _ := slices.BinarySearchFunc(l.jobs, j, compareJobs)
	l.jobs = slices.Insert(l.jobs, at, j)
}

func (l *line) remove(j *Job) {
	if at, found := slices.BinarySearchFunc(l.jobs, j, compareJobs); found {
		l.jobs = slices.Delete(l.jobs, at, at+1)
	}
}

// after returns the job behind j in the line; nil if there is none.
func (l *line) after(j *Job) *Job {
	at, found := slices.BinarySearchFunc(l.jobs, j, compareJobs)
	if found {
		at++
	}
	if at >= len(l.jobs) {
		return nil
	}
	return l.jobs[at]
}

func (s *Scheduler) classOf(j *Job) classKey {
	return classKey{signature: signature{j.Request, j.MaxRuntime}, tenant: j.Tenant, class: j.Class,
		predicted: roundUp(j.Predicted), band: s.policy.band(j.Attained, j.Request.GPUs())}
}

// roundUp rounds to an eighth of a power of two of seconds, upwards.
func roundUp(d time.Duration) time.Duration {
	seconds := uint64((d + time.Second - 1) / time.Second)
	shift := max(bits.Len64(seconds)-4, 0)
	return time.Duration((seconds+1<<shift-1)>>shift<<shift) * time.Second
}

// wait puts a job into its line.
func (s *Scheduler) wait(j *Job) {
	key := s.classOf(j)
	l := s.lines[key]
	if l == nil {
		l = &line{classKey: key, tenant: s.tenantOf(j.Tenant)}
		s.lines[key] = l
		s.signatures[key.signature]++
	}
	l.add(j)
	s.waiting[j.ID] = l
	s.jobs[j.ID] = j
}

// leave takes a job out of its line.
func (s *Scheduler) leave(j *Job) {
	l := s.waiting[j.ID]
	l.remove(j)
	delete(s.waiting, j.ID)
	delete(s.jobs, j.ID)
	if len(l.jobs) > 0 {
		return
	}
	delete(s.lines, l.classKey)
	if s.signatures[l.signature]--; s.signatures[l.signature] == 0 {
		delete(s.signatures, l.signature)
	}
}
