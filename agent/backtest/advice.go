package backtest

import (
	"fmt"
	"time"
)

// Advice is what to do.
type Advice struct {
	// Use is the policy to use, or NotKnown.
	Use string `json:"use"`
	// Text are sentences for a person, the conclusion first.
	Text []string `json:"text"`
}

// NotKnown is the advice where a history is too short for any.
const NotKnown = "not_known"

// The least that something can be said about.
const (
	fewestJobs = 20
	shortest   = 3 * 24 * time.Hour
)

// clearly is by how much Forewarm must cost less than a simpler rule to be worth
// its complexity, as a share of that rule's cost. Less than this also changes
// with what the next month brings.
const clearly = 0.02

// simpler are the rules that need no forecast, the simplest first.
var simpler = []string{Reactive, Schedule, KeepAlive, LastWeek}

// cheapestRival is the cheapest simpler rule: the simplest of several that cost the same.
func (e *experiment) cheapestRival() *trial {
	best := e.shownTrial(Reactive)
	for _, policy := range simpler[1:] {
		if t := e.shownTrial(policy); t.out.Cost(e.cfg.WaitWorth) < best.out.Cost(e.cfg.WaitWorth) {
			best = t
		}
	}
	return best
}

// ruleName is what sentences call a rule.
func (t *trial) ruleName() string {
	switch t.policy {
	case Schedule:
		return "a fixed schedule on weekdays from 9 to 18"
	case KeepAlive:
		return "keep each GPU for " + t.setting + " after its job"
	case LastWeek:
		return "the same as last week"
	default:
		return "keep nothing warm"
	}
}

// fillAdvice fills in the break-even and the recommendation.
func (e *experiment) fillAdvice(r *Report) {
	if r.History.Scored < fewestJobs || r.History.To.Sub(r.History.From) < shortest {
		r.Advice = e.tooShort(r.History)
		return
	}
	r.BreakEven = e.breakEven()
	ours, rival := e.shownTrial(Forewarm).out.Cost(e.cfg.WaitWorth), e.cheapestRival()
	theirs := rival.out.Cost(e.cfg.WaitWorth)
	if ours < (1-clearly)*theirs {
		r.Advice = Advice{Use: Forewarm, Text: []string{
			fmt.Sprintf("Use Forewarm: waiting and waste together cost %s less than with the best simpler rule (%s).",
				formatShare(theirs-ours, theirs), rival.ruleName()),
			"Start with forewarm-agent run, which only watches and keeps score until it is told mode: auto.",
		}}
		return
	}
	r.Advice = Advice{Use: rival.policy, Text: append([]string{e.recommendRival(rival, ours, theirs)},
		e.setupSteps(rival)...)}
}

func (e *experiment) tooShort(p Past) Advice {
	return Advice{Use: NotKnown, Text: []string{
		"Nothing can be said: " + p.whatIsLacking() + ".",
		"Come back with a longer history. Until then do not change anything because of this table.",
	}}
}

// whatIsLacking says what there is too little of: jobs, time or both.
func (p Past) whatIsLacking() string {
	span := p.To.Sub(p.From)
	jobs := fmt.Sprintf("%s after the warm-up, and it takes %d", countOf(p.Scored, "job"), fewestJobs)
	cover := fmt.Sprintf("the jobs after the warm-up cover %s, and it takes %s", formatRoughly(span),
		formatRoughly(shortest))
	switch {
	case p.Scored >= fewestJobs:
		return "the history is too short: " + cover
	case span >= shortest:
		return "there are too few jobs: " + jobs
	default:
		return "the history is too short, with too few jobs: " + cover + "; there are " + jobs
	}
}

// formatRoughly writes a time with its two largest units.
func formatRoughly(d time.Duration) string {
	days, hours, minutes := int(d/(24*time.Hour)), int(d%(24*time.Hour)/time.Hour), int(d%time.Hour/time.Minute)
	join := func(n int, large string, m int, small string) string {
		if m == 0 {
			return countOf(n, large)
		}
		return countOf(n, large) + " " + countOf(m, small)
	}
	switch {
	case days > 0:
		return join(days, "day", hours, "hour")
	case hours > 0:
		return join(hours, "hour", minutes, "minute")
	default:
		return countOf(minutes, "minute")
	}
}

// recommendRival says that a simpler rule is to be used, and by how much it wins.
func (e *experiment) recommendRival(rival *trial, ours, theirs float64) string {
	if ours < theirs {
		return fmt.Sprintf("Do not use Forewarm here; use the simpler rule: %s. Forewarm costs only %s less, which "+
			"is too little to rely on.",
			rival.ruleName(), formatShare(theirs-ours, theirs))
	}
	return fmt.Sprintf("Do not use Forewarm here; use the simpler rule: %s. With Forewarm, waiting and waste "+
		"together would cost %s more.",
		rival.ruleName(), formatShare(ours-theirs, theirs))
}

// setupSteps says how to set up a simpler rule.
func (e *experiment) setupSteps(t *trial) []string {
	switch t.policy {
	case KeepAlive:
		return []string{
			fmt.Sprintf("Set it up: forewarm pools edit POOL --idle-release %s", formatMinutes(t.keep)),
			"Its time was chosen in hindsight, which favours it; no other rule had this advantage.",
		}
	case Schedule:
		gpus := 0
		for _, level := range e.levels {
			gpus += level
		}
		return []string{fmt.Sprintf("Set it up: forewarm reserve --gpus %d --pool POOL --at 'mon 09:00' --for 9h "+
			"--every weekday", gpus)}
	case LastWeek:
		return []string{"Set it up: book the hours that were busy last week, with forewarm reserve --every weekly."}
	default:
		return []string{"At your price of waiting, GPUs that idle cost more than the waits that they would save. " +
			"Nothing is to be set up."}
	}
}

// BreakEven says from which price of waiting Forewarm is worth more than the best
// simpler rule, both as they ran at the price that was given.
type BreakEven struct {
	Against string `json:"against"` // the simpler rule
	// Worth says when Forewarm is worth it: above or below the price, always or
	// never.
	Worth     string   `json:"worth_it"`
	WaitWorth *float64 `json:"wait_worth"`        // idle GPU-hours for an hour of waiting
	USD       *float64 `json:"usd_per_wait_hour"` // the same as money, if the GPU's price is known
}

// When Forewarm is worth it.
const (
	Above  = "above"
	Below  = "below"
	Always = "always"
	Never  = "never"
)

func (e *experiment) breakEven() *BreakEven {
	rival, ours := e.cheapestRival(), e.shownTrial(Forewarm).out
	saved := rival.out.WaitHours - ours.WaitHours
	extra := ours.IdleHours + ours.BootHours - rival.out.IdleHours - rival.out.BootHours
	b := &BreakEven{Against: rival.policy}
	switch {
	case saved >= 0 && extra <= 0 && (saved > 0 || extra < 0):
		b.Worth = Always
		return b
	case saved <= 0 && extra >= 0:
		b.Worth = Never
		return b
	case saved > 0:
		b.Worth = Above
	default:
		b.Worth = Below
	}
	b.WaitWorth = roundedOrNil(extra / saved)
	if e.cfg.GPUPrice > 0 {
		b.USD = roundedOrNil(extra / saved * e.cfg.GPUPrice)
	}
	return b
}

// formatShare writes part as a percentage of whole.
func formatShare(part, whole float64) string {
	if whole <= 0 {
		return "0 %"
	}
	if p := 100 * part / whole; p < 9.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

// formatMinutes writes seconds as a flag takes them.
func formatMinutes(seconds int64) string { return fmt.Sprintf("%dm", seconds/60) }

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
