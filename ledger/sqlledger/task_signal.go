package sqlledger

import "sync"

// signal tells those who wait that something has happened. The zero value is ready.
type signal struct {
	mu     sync.Mutex
	waiter chan struct{} // nil: nobody waits
}

// wait returns what is closed at the next call of wakeAll.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiter == nil {
		s.waiter = make(chan struct{})
	}
	return s.waiter
}

func (s *signal) wakeAll() {
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
