package ledger

// Waiting returns how many verbs wait for their turn.
func (l *Ledger) Waiting() int {
	l.lane.mu.Lock()
	defer l.lane.mu.Unlock()
	return len(l.lane.queue)
}
