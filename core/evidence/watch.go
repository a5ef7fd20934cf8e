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
	ID      string         `json:"id"`
	Ready   time.Time      `json:"ready"` // when its GPUs have booted
	Doubt   time.Time      `json:"doubt"` // it is given up if nothing has come by then
	GPUs    [sizes]int     `json:"gpus"`  // judged
	Held    int            `json:"held"`  // really
	Arrived int            `json:"arrived"`
	Saved   [sizes]float64 `json:"saved"`
	Idle    [sizes]float64 `json:"idle"` // GPU-seconds
	Spared  float64        `json:"spared"`
	Spent   float64        `json:"spent"` // GPU-seconds
}

// NewWatch returns the Watch of a tenant whose GPUs take boot to be ready.
func NewWatch(boot time.Duration) *Watch { return &Watch{boot: boot, supply: supply{boot: boot}} }

// Plan tells the statistics' supply target from now on: GPUs in use included.
func (w *Watch) Plan(now time.Time, target int) {
	now = w.advanceTo(now)
	w.planned = target
	w.supply.setLevel(now, max(w.planned, w.demand))
}

// Open begins to watch a record whose hold begins now, as it was decided.
func (w *Watch) Open(now time.Time, id string, r Record, d Decision) {
	now = w.advanceTo(now)
	h := &hold{ID: id, Ready: now.Add(w.boot), Doubt: d.Doubt, Held: d.GPUs}
	for i := range sizes {
		h.GPUs[i] = r.Held(i)
	}
	w.holds = append(w.holds, h)
}

// Submit tells of a job that arrived.
func (w *Watch) Submit(now time.Time, gpus int) {
	now = w.advanceTo(now)
	wait := w.supply.bootLeft(now, w.demand+gpus)
	for _, h := range w.holds {
		if h.isGivenUp(now) {
			continue
		}
		spared := wait - min(wait, max(0, h.Ready.Sub(now)))
		for i, n := range h.GPUs {
			if h.Arrived+gpus <= n {
				h.Saved[i] += shareOf(spared, w.boot)
				h.Idle[i] -= spared.Seconds() * float64(gpus) // a boot that would have been paid for anyway
			}
		}
		if h.Arrived+gpus <= h.Held {
			h.Spared += shareOf(spared, w.boot)
			h.Spent -= spared.Seconds() * float64(gpus)
			wait -= spared // nothing is left for those that were opened later
		}
		h.Arrived += gpus
	}
	w.demand += gpus
	w.supply.setLevel(now, max(w.planned, w.demand))
}

func shareOf(part, whole time.Duration) float64 { return float64(part) / float64(whole) }

// End tells that a job ended.
func (w *Watch) End(now time.Time, gpus int) {
	now = w.advanceTo(now)
	w.demand = max(0, w.demand-gpus)
	w.supply.setLevel(now, max(w.planned, w.demand))
}

// advanceTo counts what idles until now, and returns now, or the latest instant told
// if that is later: what is told too late happens when it is told.
func (w *Watch) advanceTo(now time.Time) time.Time {
	if !now.After(w.now) {
		return w.now
	}
	covered := w.planned - w.demand
	for _, h := range w.holds {
		until := now
		if h.isGivenUp(now) {
			until = h.Doubt
		}
		seconds := max(0, until.Sub(w.now).Seconds())
		for i, n := range h.GPUs {
			h.Idle[i] += seconds * float64(max(0, n-h.Arrived-max(0, covered)))
		}
		h.Spent += seconds * float64(max(0, h.Held-h.Arrived-max(0, covered)))
		if seconds > 0 {
			covered = max(covered, h.Held-h.Arrived)
		}
	}
	w.now = now
	return now
}

// isGivenUp reports whether the hold was given up because nothing had come.
func (h *hold) isGivenUp(now time.Time) bool { return h.Arrived == 0 && !now.Before(h.Doubt) }

// Demand returns the GPUs of the jobs that were submitted and have not ended.
func (w *Watch) Demand() int { return w.demand }

// Claimed returns the GPUs that accepted records still hold beyond the demand: of
// several the most, since they may speak of the same need.
func (w *Watch) Claimed(now time.Time) int {
	most := 0
	for _, h := range w.holds {
		if !h.isGivenUp(now) {
			most = max(most, h.Held-h.Arrived)
		}
	}
	return most
}

// Left returns the GPUs that an accepted record still holds beyond the demand.
func (w *Watch) Left(now time.Time, id string) int {
	for _, h := range w.holds {
		if h.ID == id && !h.isGivenUp(now) {
			return max(0, h.Held-h.Arrived)
		}
	}
	return 0
}

// Begun reports whether anything has come of a record that is watched.
func (w *Watch) Begun(id string) bool {
	for _, h := range w.holds {
		if h.ID == id {
			return h.Arrived > 0
		}
	}
	return false
}

// Close ends the watch over a record and returns what came of it. It reports
// false if none of the id is open.
func (w *Watch) Close(now time.Time, id string) (Outcome, bool) {
	w.advanceTo(now)
	for i, h := range w.holds {
		if h.ID != id {
			continue
		}
		w.holds = append(w.holds[:i], w.holds[i+1:]...)
		out := Outcome{Saved: h.Saved, Spared: h.Spared, Spent: max(0, h.Spent) / 3600}
		for i, s := range h.Idle {
			out.Idle[i] = max(0, s) / 3600
		}
		return out, true
	}
	return Outcome{}, false
}
