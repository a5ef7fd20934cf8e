package forecast

import "fmt"

// Prices say what waiting, booting and idling are worth. The unit of cost is the
// price of one idle GPU for one second.
type Prices struct {
	WaitWorth float64 // how many idle GPU-hours one hour of one waiting job is worth
	Boot      float64 // seconds that a unit takes to boot, which are paid for: the mean of the pool's boot times
	Late      float64 // seconds beyond Boot within which nearly every boot is over: see timetable.wanted
	Minimum   float64 // seconds that are billed for a unit at least; 0 is none
	Prepaid   float64 // seconds that the units held are paid for already
}

// Held is a decision: how many GPUs to hold beyond the demand, with the numbers
// it was made from.
type Held struct {
	Levels  int     `json:"levels"`
	Before  int     `json:"before"`           // that were held
	Chance  float64 `json:"chance"`           // that the last level held is needed within Horizon; 1 if none is held
	Refused float64 `json:"refused"`          // that the first level not held is
	Horizon float64 `json:"horizon"`          // seconds looked ahead
	Holding float64 `json:"holding"`          // expected cost of the levels held, in idle GPU-seconds
	Saving  float64 `json:"saving"`           // expected worth of what they save
	Rule    string  `json:"rule,omitempty"`   // what has cost the least lately; empty if rules were not compared
	Better  float64 `json:"better,omitempty"` // for how many seconds it has
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
func (o Outlook) Hold(p Prices, held int) Held { return o.HoldAtMost(p, held, topLevel) }

// HoldAtMost is Hold where no more than so many GPUs may be held, so that of a
// gang that is larger none is.
func (o Outlook) HoldAtMost(p Prices, held, most int) Held {
	x := o.prospectsAt(p.byClock(o.clockRate()))
	keep, boot := x.worthByLevel(p.WaitWorth)
	more := min(most, o.worthAwaiting(p))
	return o.heldAt(p, &keep, bestLevel(max(0, held-more), most-more, &keep, &boot), more, held)
}

// byClock returns the prices in seconds of a clock that runs so many times faster.
func (p Prices) byClock(rate float64) Prices {
	p.Boot, p.Late, p.Minimum, p.Prepaid = p.Boot*rate, p.Late*rate, p.Minimum*rate, p.Prepaid*rate
	return p
}

// heldAt is the decision for a level beside so many GPUs that are awaited, with the numbers for it.
func (o *Outlook) heldAt(p Prices, keep *worthCurve, level, more, before int) Held {
	clock := o.clockRate()
	h := Held{Before: before, Levels: level + more, Horizon: keepBoots * p.Boot}
	h.Saving, h.Holding = keep.sumsUpTo(level)
	h.Saving, h.Holding = h.Saving/clock, h.Holding/clock
	h.Chance, h.Refused = o.chancesAround(h.Levels, h.Horizon)
	return h
}

// Explain says in one line why.
func (h Held) Explain() string {
	why := fmt.Sprintf("hold %d (before: %d): GPU %d is needed with probability %.2f within %.0f min, the next one "+
		"with %.2f; worth %.0f s of an idle GPU, costs %.0f s",
		h.Levels, h.Before, h.Levels, h.Chance, h.Horizon/60, h.Refused, h.Saving, h.Holding)
	if h.Levels == 0 {
		why = fmt.Sprintf("hold none: one more GPU is needed with probability %.2f within %.0f min", h.Refused,
			h.Horizon/60)
		if h.Rule == "" {
			return why + ", which does not pay"
		}
	}
	if h.Rule == "" {
		return why
	}
	return fmt.Sprintf("%s; %s has been better for %s", why, h.Rule, roughTime(h.Better))
}

// roughTime says how long some seconds are.
func roughTime(seconds float64) string {
	switch {
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 2*86400:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	default:
		return fmt.Sprintf("%.0f days", seconds/86400)
	}
}

// Trade is a unit that is held until it is needed or let go, against one that is
// made when it is needed. Its times are in any one unit, and prices are per that
// unit.
type Trade struct {
	Price float64 // of the unit
	Wait  float64 // what the waiting is worth that it saves
	Boot  float64 // how long a new one takes
	Used  float64 // chance that it is needed before it is let go
	Idle  float64 // expected time until then that is still to be paid for
}

// Holding is the expected cost of holding it.
func (t Trade) Holding() float64 { return t.Price * t.Idle }

// Saving is the expected cost of letting it go: a new one is made, and somebody
// waits for it.
func (t Trade) Saving() float64 { return t.Used * t.Boot * (t.Price + t.Wait) }

// prospects are what is expected of one GPU of each bin, whatever waiting is worth.
type prospects struct {
	bins   int
	keep   [bins]Trade   // of one that is ready, but for the worth of waiting
	saved  [bins]float64 // seconds of a boot that begins now and are over when it is needed,
	costs  [bins]float64 // and what that boot costs
	landed [bins]float64 // see chanceOfLanding
}

// prospectsAt works out what is expected at some prices.
func (o *Outlook) prospectsAt(p Prices) (x prospects) {
	x.bins = o.bins
	keepHorizon, bootHorizon := keepBoots*p.Boot, bootBoots*p.Boot
	keepUsed, bootUsed := chanceWithin(keepHorizon), chanceWithin(bootHorizon)
	keepIdle := idleTime(p.Prepaid, keepHorizon)
	whileBooting, afterBoot := idleTime(0, p.Boot), idleTime(p.Boot, bootHorizon)
	for b := range o.bins {
		c := &o.chances[b]
		x.landed[b] = o.chanceOfLanding(b)
		x.keep[b] = Trade{Price: 1, Boot: p.Boot, Used: keepUsed.of(c), Idle: keepIdle.of(c)}
		used := bootUsed.of(c)
		x.saved[b] = max(0, used*p.Boot-(p.Boot-whileBooting.of(c)))
		x.costs[b] = max(p.Boot+afterBoot.of(c), p.Minimum) - used*max(p.Boot, p.Minimum)
	}
	return x
}

// worthOfGPU is what one GPU of a bin saves and costs; hopeless if it would cost more
// than it saves even if the need of a job ended at every GPU.
type worthOfGPU struct {
	saving, holding float64
	hopeless        bool
}

// worthOfKeeping weighs one GPU of a bin that is ready.
func (x *prospects) worthOfKeeping(wait float64, b int) worthOfGPU {
	t := x.keep[b]
	t.Wait = wait
	most := t.Saving()
	t.Wait *= x.landed[b]
	return worthOfGPU{t.Saving(), t.Holding(), most < t.Holding()}
}

// worthOfBooting weighs one GPU of a bin that is booted now: it saves the part of its boot
// that is over when it is needed, and is paid for if it is not.
func (x *prospects) worthOfBooting(wait float64, b int) worthOfGPU {
	most := caution * x.saved[b] * wait
	return worthOfGPU{most * x.landed[b], x.costs[b], most < x.costs[b]}
}

// chanceOfLanding is the part of a bin's GPUs at which the need of a job ends, if they are
// needed. A job saves its wait only if all that it needs is there.
func (o *Outlook) chanceOfLanding(b int) float64 { return float64(o.chances[b][landing]) }
