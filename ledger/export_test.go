package ledger

// Waiting returns how many verbs wait for their turn.
func (l *Ledger) Waiting() int {
	l.commits.mu.Lock()
	defer l.commits.mu.Unlock()
	return len(l.commits.queue)
}
