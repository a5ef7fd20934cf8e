package backtest

// The kinds of events, in the order in which they happen within a second. A look
// changes nothing by itself: it makes the fleet decide.
const (
	jobEnds = iota
	bootReady
	arrival // of a job that comes after another one
	look
)

// event is something that is to happen to one tenant.
type event struct {
	at     int64
	kind   int
	tenant int
	job    int // of jobEnds and arrival
	units  int // of bootReady
}

func (e event) sortsBefore(o event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.kind != o.kind {
		return e.kind < o.kind
	}
	return e.kind == arrival && e.job < o.job
}

// agenda is a binary heap of events. Events of one kind and second may come in
// any order, since they change nothing that the others see, but for arrivals,
// which come in the order of the jobs.
type agenda []event

func (a *agenda) push(e event) {
	h := append(*a, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].sortsBefore(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	*a = h
}

func (a *agenda) pop() event {
	h := *a
	first, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if h[c].sortsBefore(h[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*a = h
	return first
}
