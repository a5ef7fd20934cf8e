package evidence

import "time"

// Watch follows one tenant and sees what records would have been worth: it keeps
// what statistics alone supplied, level by level, and for every open hold what
// jobs it would have spared a wait and what it would have idled, beyond that and
// beyond the accepted holds that were opened before it: what is said twice is worth
// something once. It assumes that statistics would have done the same had nothing
// been held.
type Watch struct {
	boot    time.Duration
	supply  supply // by statistics alone
	planned int    // the statistics' target
	demand  int    // GPUs of jobs that were submitted and have not ended
	now     time.Time
	holds   []*hold // oldest first
}

// hold is one record between the opening and the close.
type hold struct {
	id      string
	ready   time.Time // when its GPUs have booted
	doubt   time.Time // it is given up if nothing has come by then
	gpus    [sizes]int
	held    int // really
	arrived int // GPUs that came since
	saved   [sizes]float64
	idle    [sizes]float64 // GPU-seconds
	spared  float64
	spent   float64 // GPU-seconds
}

// NewWatch returns the Watch of a tenant whose GPUs take boot to be ready.
func NewWatch(boot time.Duration) *Watch { return &Watch{boot: boot, supply: supply{boot: boot}} }

// Plan tells the statistics' supply target from now on: GPUs in use included.
func (w *Watch) Plan(now time.Time, target int) {
	w.advance(now)
	w.planned = target
	w.supply.set(now, max(w.planned, w.demand))
}

// Open begins to watch a record whose hold begins now, as it was decided.
func (w *Watch) Open(now time.Time, id string, r Record, d Decision) {
	w.advance(now)
	h := &hold{id: id, ready: now.Add(w.boot), doubt: d.Doubt, held: d.GPUs}
	for i := range sizes {
		h.gpus[i] = r.Held(i)
	}
	w.holds = append(w.holds, h)
}

// Submit tells of a job that arrived.
func (w *Watch) Submit(now time.Time, gpus int) {
	w.advance(now)
	wait := w.supply.wait(now, w.demand+gpus)
	for _, h := range w.holds {
		if h.over(now) {
			continue
		}
		spared := wait - min(wait, max(0, h.ready.Sub(now)))
		for i, n := range h.gpus {
			if h.arrived+gpus <= n {
				h.saved[i] += share(spared, w.boot)
				h.idle[i] -= spared.Seconds() * float64(gpus) // a boot that would have been paid for anyway
			}
		}
		if h.arrived+gpus <= h.held {
			h.spared += share(spared, w.boot)
			h.spent -= spared.Seconds() * float64(gpus)
			wait -= spared // nothing is left for those that were opened later
		}
		h.arrived += gpus
	}
	w.demand += gpus
	w.supply.set(now, max(w.planned, w.demand))
}

func share(part, whole time.Duration) float64 { return float64(part) / float64(whole) }

// End tells that a job ended.
func (w *Watch) End(now time.Time, gpus int) {
	w.advance(now)
	w.demand = max(0, w.demand-gpus)
	w.supply.set(now, max(w.planned, w.demand))
}

// advance counts what idles until now.
func (w *Watch) advance(now time.Time) {
	if !now.After(w.now) {
		return
	}
	covered := w.planned - w.demand
	for _, h := range w.holds {
		until := now
		if h.over(now) {
			until = h.doubt
		}
		seconds := max(0, until.Sub(w.now).Seconds())
		for i, n := range h.gpus {
			h.idle[i] += seconds * float64(max(0, n-h.arrived-max(0, covered)))
		}
		h.spent += seconds * float64(max(0, h.held-h.arrived-max(0, covered)))
		if seconds > 0 {
			covered = max(covered, h.held-h.arrived)
		}
	}
	w.now = now
}

// over reports whether the hold was given up because nothing had come.
func (h *hold) over(now time.Time) bool { return h.arrived == 0 && !now.Before(h.doubt) }

// Demand returns the GPUs of the jobs that were submitted and have not ended.
func (w *Watch) Demand() int { return w.demand }

// Claimed returns the GPUs that accepted records still hold beyond the demand: of
// several the most, since they may speak of the same need.
func (w *Watch) Claimed(now time.Time) int {
	most := 0
	for _, h := range w.holds {
		if !h.over(now) {
			most = max(most, h.held-h.arrived)
		}
	}
	return most
}

// Close ends the watch over a record and returns what came of it. It reports
// false if none of the id is open.
func (w *Watch) Close(now time.Time, id string) (Outcome, bool) {
	w.advance(now)
	for i, h := range w.holds {
		if h.id != id {
			continue
		}
		w.holds = append(w.holds[:i], w.holds[i+1:]...)
		out := Outcome{Saved: h.saved, Spared: h.spared, Spent: max(0, h.spent) / 3600}
		for i, s := range h.idle {
			out.Idle[i] = max(0, s) / 3600
		}
		return out, true
	}
	return Outcome{}, false
}
