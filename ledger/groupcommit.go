package ledger

// LockHint names what a verb will lock, as far as its caller can tell, so that it can
// share a transaction with others. A wrong or missing name costs time, nothing
// else.
type LockHint struct {
	Pool        string // id or name
	Reservation string
	Allocation  string
	// Alone asks for a transaction of its own all the same: it has much to do.
	Alone bool
}
