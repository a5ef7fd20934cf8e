package backtest

// Oracle returns what perfect foresight comes to: nobody waits, and GPU number k
// of a tenant is held through a pause that is shorter than a boot, and otherwise
// released and booted anew just in time. It is the lowest cost at which nobody
// waits, since a unit either idles through a pause or boots after it.
func Oracle(t Trace, boot int64) (Outcome, error) {
	if err := t.Validate(); err != nil {
		return Outcome{}, err
	}
	_, from, last := t.Window()
	return OracleWithin(t, boot, Span{from, last})
}

// OracleWithin is Oracle over the seconds that are to be scored.
func OracleWithin(t Trace, boot int64, scored Span) (Outcome, error) {
	if err := t.Validate(); err != nil {
		return Outcome{}, err
	}
	o := foresight{boot: boot, from: scored.From, last: scored.Last}
	for _, steps := range t.Demand() {
		o.addTenant(steps)
	}
	for _, j := range t.Jobs {
		if j.Submit > o.from && j.Submit <= o.last {
			o.out.addWait(0)
		}
	}
	o.out.sumScores(t, Span{o.from, o.last})
	return o.out, nil
}

// foresight adds up what an Oracle pays.
type foresight struct {
	boot, from, last int64
	out              Outcome
}

func (o *foresight) addTenant(steps []Step) {
	freed := make([]int64, Peak(steps)) // when a level fell idle, by level
	for k := range freed {
		freed[k] = -1
	}
	level := 0
	for _, s := range steps {
		for k := level; k < s.Level; k++ {
			o.useUnit(freed[k], s.At)
		}
		for k := s.Level; k < level; k++ {
			freed[k] = s.At
		}
		level = s.Level
	}
}

// useUnit counts what it took to have a GPU at a second: its idling since it was
// freed, or its boot. A negative freed stands for a GPU that was never there.
func (o *foresight) useUnit(freed, at int64) {
	if freed >= 0 && at-freed < o.boot {
		o.out.idle += o.scoredPart(freed, at)
		return
	}
	o.out.boot += o.scoredPart(at-o.boot, at)
}

// scoredPart returns how much of a time lies within the scored window.
func (o *foresight) scoredPart(begin, end int64) int64 {
	return max(0, min(end, o.last)-max(begin, o.from))
}

// GapClosed returns which part of the cost that foresight could save was saved,
// in percent, when an hour of one waiting job is worth r idle GPU-hours. Nothing
// is saved by doing what reactive does, and everything by doing what the oracle
// does; a policy that costs more than reactive has a negative part.
func GapClosed(reactive, policy, oracle Outcome, r float64) float64 {
	return percent(reactive.Cost(r)-policy.Cost(r), reactive.Cost(r)-oracle.Cost(r))
}
