package scheduler

import (
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

// waitFrom puts a job into its line at NotBefore, or now if that is past.
func (s *Scheduler) waitFrom(j Job, now time.Time) {
	if !j.NotBefore.After(now) {
		s.wait(&waiter{Job: j})
		return
	}
	// The queue is as long as it may get, and who is in it already was refused before.
	if s.later.Push(j.ID, queue.Key{Major: j.NotBefore.UnixNano()}) == nil {
		s.early[j.ID] = j
	}
}

// wakeLater lets into their lines whose time has come.
func (s *Scheduler) wakeLater(now time.Time) {
	for id, k, ok := s.later.Peek(); ok && k.Major <= now.UnixNano(); id, k, ok = s.later.Peek() {
		s.later.Pop()
		s.wait(&waiter{Job: s.early[id]})
		delete(s.early, id)
	}
}

// cancelEarly takes out a job whose time has not come. It returns false when there is none.
func (s *Scheduler) cancelEarly(id string) bool {
	delete(s.early, id)
	return s.later.Remove(id)
}
