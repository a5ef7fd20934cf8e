package sqlledger

import "sync"

// taskSignal tells those who wait that tasks were saved. The zero value is ready.
type taskSignal struct {
	mu     sync.Mutex
	waiter chan struct{} // nil: nobody waits
}

// wait returns what is closed at the next call of wakeAll.
func (s *taskSignal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiter == nil {
		s.waiter = make(chan struct{})
	}
	return s.waiter
}

func (s *taskSignal) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiter != nil {
		close(s.waiter)
		s.waiter = nil
	}
}

// TasksSaved tells of the tasks of a database of one process.
func (s *Store) TasksSaved() <-chan struct{} {
	if !s.alone {
		return nil
	}
	return s.tasks.wait()
}
