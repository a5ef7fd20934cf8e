package txn

// trust is whether what is remembered may be assumed, which spares a round trip
// where nobody else writes. An assumption that proves wrong costs more than that,
// and a turn at the lock beside others who write: so the next one is made only
// after a number of groups for which it would have held. The number doubles with
// each that was wrong, and falls by one with each that was right.
type trust struct {
	held   int // how many groups in a row found everything as it is remembered
	needed int
}

// maxNeeded bounds how many groups pass before the next try.
const maxNeeded = 64

func (t *trust) isEarned() bool { return t.held > t.needed }

// expectsChanges reports whether others wrote before the last lock.
func (t *trust) expectsChanges() bool { return t.held == 0 }

// noteFound notes whether a lock found everything as it is remembered.
func (t *trust) noteFound(unchanged bool) {
	if t.held++; !unchanged {
		t.held = 0
	}
}

func (t *trust) noteRight() { t.needed = max(t.needed-1, 0) }

func (t *trust) noteWrong() { t.held, t.needed = 0, min(2*t.needed+1, maxNeeded) }
