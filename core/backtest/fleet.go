package backtest

// batch is a number of units that became idle, or will be ready, in one second.
type batch struct {
	at    int64
	units int
}

// waiting is a job that has not started.
type waiting struct {
	job  int
	gpus int
}

// fleet is the units of one tenant.
type fleet struct {
	policy  Policy
	target  int
	busy    int
	idle    []batch // oldest first
	idling  int     // units in idle
	boots   int     // units that boot
	pending []waiting
	need    int   // GPUs of pending
	since   int64 // idling and boots are counted up to here
	touched bool
	timer   int64 // the keep-alive timer that is set, 0 for none
	asked   int64 // the second for which Next is on the agenda
}

// startJobs takes the newest idle units for the first pending jobs, in strict order,
// and returns how many jobs may start.
func (f *fleet) startJobs() int {
	n := 0
	for n < len(f.pending) && f.pending[n].gpus <= f.idling {
		f.takeNewest(f.pending[n].gpus)
		n++
	}
	return n
}

func (f *fleet) takeNewest(units int) {
	f.idling -= units
	f.busy += units
	f.need -= units
	for units > 0 {
		last := &f.idle[len(f.idle)-1]
		n := min(units, last.units)
		last.units -= n
		units -= n
		if last.units == 0 {
			f.idle = f.idle[:len(f.idle)-1]
		}
	}
}

// addIdle makes units idle.
func (f *fleet) addIdle(now int64, units int) {
	f.idling += units
	if n := len(f.idle); n > 0 && f.idle[n-1].at == now {
		f.idle[n-1].units += units
		return
	}
	f.idle = append(f.idle, batch{now, units})
}

// planBoots returns how many units to boot, and releases those that are too many: the
// oldest first, and only those that became idle at or before the second given. If
// none is to be lost to a boot, units that boot are no reason to release: as many
// as are wanted stay ready.
func (f *fleet) planBoots(before int64, keepReady bool) (boot int) {
	boot = max(0, f.need-f.idling-f.boots)
	spare := f.idling + f.boots + boot - f.need
	want := max(0, f.target-f.busy-f.need)
	if spare < want {
		return boot + want - spare
	}
	if keepReady {
		spare -= f.boots + boot
	}
	f.releaseUnits(min(spare-want, f.idling-f.need), before)
	return boot
}

func (f *fleet) releaseUnits(units int, before int64) {
	gone := 0
	for units > 0 && gone < len(f.idle) && f.idle[gone].at <= before {
		n := min(units, f.idle[gone].units)
		f.idle[gone].units -= n
		f.idling -= n
		units -= n
		if f.idle[gone].units == 0 {
			gone++
		}
	}
	if gone > 0 {
		f.idle = append(f.idle[:0], f.idle[gone:]...)
	}
}
