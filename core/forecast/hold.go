package forecast

import "fmt"

// Prices say what waiting, booting and idling are worth. The unit of cost is the
// price of one idle GPU for one second.
type Prices struct {
	WaitWorth float64 // how many idle GPU-hours one hour of one waiting job is worth
	Boot      float64 // seconds that a unit takes to boot, which are paid for: the mean of the pool's boot times
	Minimum   float64 // seconds that are billed for a unit at least; 0 is none
	Prepaid   float64 // seconds that the units held are paid for already
}

// Held is a decision: how many GPUs to hold beyond the demand, with the numbers
// it was made from.
type Held struct {
	Levels  int     `json:"levels"`
	Before  int     `json:"before"`  // that were held
	Chance  float64 `json:"chance"`  // that the last level held is needed within Horizon; 1 if none is held
	Refused float64 `json:"refused"` // that the first level not held is
	Horizon float64 `json:"horizon"` // seconds looked ahead
	Holding float64 `json:"holding"` // expected cost of the levels held, in idle GPU-seconds
	Saving  float64 `json:"saving"`  // expected worth of what they save
}

const (
	// keepBoots and bootBoots are how many boots ahead holding and booting look.
	keepBoots, bootBoots = 4, 2
	// caution is the part of a boot's expected saving that counts. A boot can be put
	// off and decided again when more is known, and most are by the next arrival;
	// so it has to pay more than once over. Found in replays, where 0.3 to 0.5
	// hardly differ.
	caution = 0.35
)

// Hold decides how many GPUs to hold beyond the demand when so many are held. A
// GPU that is held costs its idling; needed, it saves its boot, and the job whose
// need it completes saves its wait. So the GPUs of a gang are held together or
// not at all. A GPU is kept if that pays within four boots, and booted if it pays
// with caution within two.
//
// A higher worth of waiting, or higher chances, never lead to holding less.
func (o Outlook) Hold(p Prices, held int) Held {
	keep := o.curve(p, keepBoots*p.Boot, p.keep)
	h := Held{Before: held, Horizon: keepBoots * p.Boot}
	h.Levels = min(held, keep.best(p.WaitWorth, 0))
	h.Levels = max(h.Levels, o.curve(p, bootBoots*p.Boot, p.boot).best(p.WaitWorth, h.Levels))
	h.Saving, h.Holding = keep.sums(p.WaitWorth, h.Levels)
	h.Chance, h.Refused = o.Chance(h.Levels, h.Horizon), o.Chance(h.Levels+1, h.Horizon)
	return h
}

// Explain says in one line why.
func (h Held) Explain() string {
	if h.Levels == 0 {
		return fmt.Sprintf("hold none: one more GPU is needed with probability %.2f within %.0f min, which does not pay", h.Refused, h.Horizon/60)
	}
	return fmt.Sprintf("hold %d (before: %d): GPU %d is needed with probability %.2f within %.0f min, the next one with %.2f; worth %.0f s of an idle GPU, costs %.0f s",
		h.Levels, h.Before, h.Levels, h.Chance, h.Horizon/60, h.Refused, h.Saving, h.Holding)
}

// flow is what a level is expected to do up to a horizon.
type flow struct {
	used  float64 // chance that it is needed
	idle  float64 // expected seconds until it is needed, or the horizon
	early float64 // of those, seconds after the boot
	saved float64 // expected seconds of the boot that are over when it is needed
}

// keep weighs one GPU that is ready: the wait that it saves, and what it costs.
func (p Prices) keep(f flow) (wait, cost float64) {
	return f.used * p.Boot, max(0, f.idle-p.Prepaid) - f.used*p.Boot
}

// boot weighs one GPU that would be booted now rather than when it is needed.
func (p Prices) boot(f flow) (wait, cost float64) {
	return caution * f.saved, max(p.Boot+f.early, p.Minimum) - f.used*max(p.Boot, p.Minimum)
}

// curve is, bin by bin, what one GPU more saves in waiting and costs.
type curve struct {
	bins       int
	wait, cost [bins]float64
}

func (o Outlook) curve(p Prices, horizon float64, weigh func(flow) (wait, cost float64)) curve {
	c := curve{bins: o.bins}
	for b := range o.bins {
		wait, cost := weigh(o.flow(b, p.Boot, horizon))
		c.wait[b], c.cost[b] = wait*float64(o.chances[b][landing]), cost
	}
	return c
}

// flow integrates the chances of a bin, which are linear between knots.
func (o Outlook) flow(b int, boot, horizon float64) flow {
	var f flow
	from, before := 0.0, 0.0
	part := func(to float64) {
		if to <= from {
			return
		}
		p := o.within(b, to)
		mean, d := (p+before)/2, to-from
		f.idle += d * (1 - mean)
		if from >= boot {
			f.early += d * (1 - mean)
		} else {
			f.saved -= d * mean
		}
		from, before = to, p
	}
	for _, h := range knot {
		if from < boot && h > boot {
			part(min(boot, horizon))
		}
		part(min(h, horizon))
	}
	f.used = before
	f.saved = max(0, f.saved+f.used*min(boot, horizon))
	return f
}

// best returns the level, from low up, up to which the sum of what is saved and
// what it costs is greatest; the lowest of equals.
func (c curve) best(worth float64, low int) int {
	most, sum, found := 0.0, 0.0, low
	c.walk(func(level int, wait, cost float64) {
		if level <= low {
			return
		}
		if sum += worth*wait - cost; sum > most {
			most, found = sum, level
		}
	})
	return found
}

// sums adds up what the levels from 1 to level save and cost.
func (c curve) sums(worth float64, level int) (saving, holding float64) {
	c.walk(func(l int, wait, cost float64) {
		if l <= level {
			saving += worth * wait
			holding += cost
		}
	})
	return saving, holding
}

// walk visits every level, its cost drawn between its bin's and the next one's.
func (c curve) walk(visit func(level int, wait, cost float64)) {
	for b := range c.bins {
		next := c.cost[b]
		if b+1 < c.bins {
			next = c.cost[b+1]
		}
		for i := range binWidth[b] {
			share := float64(i) / float64(binWidth[b])
			visit(firstLevel[b]+i, c.wait[b], c.cost[b]+share*(next-c.cost[b]))
		}
	}
}
