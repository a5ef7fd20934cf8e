package forecast

import (
	"cmp"
	"math"
	"slices"
)

// A job that waited in the real fleet ends later, and meets others there that it would not have met. Told of that, a
// fleet on paper that had its GPUs ready looks worse than it is, and the rule that is followed better. How long a job
// has waited, and when it would have ended, is known for sure once it ends: that is a boot after it would have, at
// most, where there are GPUs to boot. So the fleets are counted a boot behind, and a job ends earlier in those that did
// not let it wait.

// change is an arrival or an end that is still to be counted.
type change struct {
	At        int64 `json:"at"`
	Submitted int64 `json:"submitted,omitempty"` // of an end
	GPUs      int32 `json:"gpus"`                // negative if a job ends,
	In        where `json:"in,omitempty"`        // and where it does
}

// where says in which fleets something happens.
type where int8

const (
	everywhere where = iota
	whereItDidNotWait
	whereItWaited
)

// runningJob is a job, and in which fleets it waited: a bit for each.
type runningJob struct {
	Submitted int64  `json:"submitted"`
	GPUs      int32  `json:"gpus"`
	Waited    uint32 `json:"waited"`
	Over      bool   `json:"over,omitempty"` // where it did not wait
}

// opinions are what the experts wanted at a look that is still to be counted, in GPUs beyond the demand.
type opinions struct {
	At        int64                 `json:"at"`
	Demand    int32                 `json:"demand"`
	Low       [forecasters]int16    `json:"low"`  // what is booted if nothing is held,
	High      [forecasters]int16    `json:"high"` // and kept if everything is
	Kept      [len(keepParts)]int16 `json:"kept"`
	Mean      [len(meanLives)]int16 `json:"mean"`
	Scheduled int16                 `json:"scheduled"`
}

// forecasters are the experts that decide by an Outlook alone, the first ones.
const forecasters = threshold + 1

// opinionsOf notes what the experts want beside so many awaited GPUs, whatever their fleets hold.
func (s *Shadows) opinionsOf(o *Outlook, c *expertCurves, most int, more int16) (n opinions) {
	n.At, n.Demand = s.tenant.past.Last, int32(o.Demand)
	low, high := c.wanted(0, most), c.wanted(topLevel, most)
	for i := range n.Low {
		n.Low[i], n.High[i] = more+int16(low[i]), more+int16(max(low[i], high[i]))
	}
	for i := range n.Kept {
		n.Kept[i] = more + int16(s.wantsOf(keep27+i, &high, topLevel, most))
	}
	for i := range n.Mean {
		n.Mean[i] = more + int16(s.wantsOf(ewma30+i, &low, 0, most))
	}
	n.Scheduled = more + int16(s.wantedByClock(most))
	return n
}

// wantsOf is what an expert wanted that held so many.
func (n *opinions) wantsOf(expert int, held int16) int16 {
	forecaster := func(i int) int16 { return min(max(held, n.Low[i]), n.High[i]) }
	switch expert {
	case nothing:
		return 0
	case larger:
		return max(forecaster(own), forecaster(threshold))
	case byClock:
		return n.Scheduled
	case ownOrTable:
		return max(forecaster(own), n.Scheduled)
	case keep27, keep9, keep3, keep1:
		return min(held, n.Kept[expert-keep27])
	case ewma30, ewma120:
		return n.Mean[expert-ewma30]
	default:
		return forecaster(expert)
	}
}

// maxNews bounds what is still to be counted: if there is more, the fleets are less far behind.
const maxNews = 1024

// note adds a change in the order of time.
func (st *shadowState) note(c change) {
	c.At = max(c.At, st.At)
	i := len(st.Changes)
	for i > 0 && st.Changes[i-1].At > c.At {
		i--
	}
	st.Changes = append(st.Changes, change{})
	copy(st.Changes[i+1:], st.Changes[i:])
	st.Changes[i] = c
}

// catchUp counts what happened up to a boot before now.
func (s *Shadows) catchUp(now int64) {
	st := &s.state
	if st.At == 0 { // whatever runs has its units
		st.At, st.Since = now, now
		for i := range st.Fleets {
			st.Fleets[i].Units = st.Fleets[i].Demand
		}
	}
	to := now - int64(s.experts.boot)
	changes, seen := 0, 0
	for {
		full := len(st.Changes)-changes > maxNews || len(st.Looks)-seen > maxNews
		next, isLook := st.nextNews(changes, seen)
		if next == math.MaxInt64 || next > to && !full {
			break
		}
		if isLook {
			s.follow(&st.Looks[seen])
			seen++
		} else {
			s.apply(st.Changes[changes])
			changes++
		}
	}
	st.Changes = slices.Delete(st.Changes, 0, changes)
	st.Looks = slices.Delete(st.Looks, 0, seen)
	s.passTo(to)
}

// nextNews is when the first is of the changes and looks that remain, and whether it is a look. A look comes after the
// changes of its second.
func (st *shadowState) nextNews(changes, looks int) (at int64, isLook bool) {
	at = math.MaxInt64
	if changes < len(st.Changes) {
		at = st.Changes[changes].At
	}
	if looks < len(st.Looks) && st.Looks[looks].At < at {
		return st.Looks[looks].At, true
	}
	return at, false
}

// apply counts an arrival or an end.
func (s *Shadows) apply(c change) {
	s.passTo(c.At)
	if c.GPUs > 0 {
		s.begin(c)
	} else {
		s.finish(c)
	}
}

// begin counts an arrival.
func (s *Shadows) begin(c change) {
	st := &s.state
	st.Queue.add(c.At, c.GPUs)
	j := runningJob{Submitted: c.At, GPUs: c.GPUs}
	for i := range st.Fleets {
		f := &st.Fleets[i]
		if f.Demand += c.GPUs; f.Demand > f.Units {
			j.Waited |= 1 << i
		}
	}
	st.Jobs = append(st.Jobs, j)
}

// finish counts an end. Of a job that is not known, its wait is what it was in the real fleet.
func (s *Shadows) finish(c change) {
	st, waited := &s.state, uint32(math.MaxUint32)
	at := st.findJob(c)
	if at >= 0 {
		waited = st.Jobs[at].Waited
	}
	for i := range st.Fleets {
		f := &st.Fleets[i]
		if in := [2]where{whereItDidNotWait, whereItWaited}[waited>>i&1]; c.In != everywhere && c.In != in {
			continue
		}
		s.charge(i, f.orphan(c.Submitted, s.experts.worth, &st.Queue))
		f.Demand = max(0, f.Demand+c.GPUs)
	}
	if c.In == whereItDidNotWait {
		if at >= 0 {
			st.Jobs[at].Over = true
		}
		return
	}
	st.Queue.remove(c.Submitted, -c.GPUs)
	if at >= 0 {
		st.Jobs = slices.Delete(st.Jobs, at, at+1)
	}
}

// findJob returns the place of the job that ends, or of one that is its like, and -1 if none is known. Jobs are in the
// order of their arrivals.
func (st *shadowState) findJob(c change) int {
	at, _ := slices.BinarySearchFunc(st.Jobs, c.Submitted, func(j runningJob, submitted int64) int {
		return cmp.Compare(j.Submitted, submitted)
	})
	for ; at < len(st.Jobs) && st.Jobs[at].Submitted == c.Submitted; at++ {
		if j := &st.Jobs[at]; j.GPUs == -c.GPUs && j.Over == (c.In == whereItWaited) {
			return at
		}
	}
	return -1
}

// follow lets the fleets do what was wanted at a look. A job that is over in a fleet, because it did not wait there,
// was in the demand of the look: the units that it had are kept as if they were in use, and none are booted for it.
func (s *Shadows) follow(n *opinions) {
	s.passTo(n.At)
	for i := range s.state.Fleets {
		f := &s.state.Fleets[i]
		have := f.Units + f.booting()
		target := n.Demand + int32(n.wantsOf(i, int16(max(0, min(topLevel, have-n.Demand)))))
		switch {
		case i == nothing:
			target = f.Demand
		case target > have:
			target = max(have, target-max(0, n.Demand-f.Demand))
		}
		f.follow(target, float32(s.experts.boot))
	}
}
