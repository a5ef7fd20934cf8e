package forecast

// example is one look that waits for what comes true.
type example struct {
	at     int64
	demand int
	bins   int   // how many were worth predicting
	lasted int64 // seconds until the next look
	look   features
	said   [bins][outputs]float32
	after  [bins]int32   // seconds until demand rose to the bin; never is more than any knot
	landed [bins]float32 // part of the bin's GPUs at which a job's need ended
	odds   [bins]float32 // log-odds of the hazard
	credit [bins]float32 // one by the GPUs of the job whose need first rose to the bin within the hazard's window
}

// never is more seconds than any knot.
const never = 1 << 30

// submission is an arrival, with the demand after it.
type submission struct {
	at     int64
	demand int
	gpus   int
}

// closeWith fills in what came of e, from the arrivals in the order of time.
func (e *example) closeWith(arrivals []submission) {
	for b := range e.after {
		e.after[b], e.landed[b], e.credit[b] = never, 0, 0
	}
	peak, next := 0, 0
	for _, a := range arrivals {
		rise := a.demand - e.demand
		if a.at <= e.at || rise <= peak {
			continue
		}
		if a.at > e.at+longestKnot || next == bins {
			return
		}
		for next < bins && firstLevel[next] <= rise {
			e.after[next] = int32(a.at - e.at)
			if a.at <= e.at+hazardWindow {
				e.credit[next] = 1 / float32(a.gpus)
			}
			next++
		}
		if b := next - 1; rise < firstLevel[b]+binWidth[b] {
			e.landed[b] = min(1, e.landed[b]+1/float32(binWidth[b]))
		}
		peak = rise
	}
}

// neededBins tells which bins were needed within seenKnot.
func (e *example) neededBins(arrivals []submission) (hit [bins]bool) {
	for _, a := range arrivals {
		if a.at > e.at && a.at <= e.at+seenKnot {
			for b := 0; b < bins && firstLevel[b] <= a.demand-e.demand; b++ {
				hit[b] = true
			}
		}
	}
	return hit
}

// errorsOf of the chances said of a bin; e has been closed.
func (e *example) errorsOf(bin int, said *[outputs]float32) (wrong [outputs]float32) {
	for k := range knot {
		wrong[k] = said[k]
		if float64(e.after[bin]) <= knot[k] {
			wrong[k]--
		}
	}
	if float64(e.after[bin]) <= longestKnot {
		wrong[landing] = said[landing] - e.landed[bin]
	}
	return wrong
}
