// Package place turns a prediction into the plan that the agent asks for: which
// GPUs to keep warm, and when. It only computes; sending is the agent's.
package place

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
)

// Config says what waiting and idling are worth to the user, and how far the
// agent may go. The server enforces its own caps whatever stands here.
type Config struct {
	// WaitWorth is how many idle GPU-hours one hour of one waiting job is worth.
	WaitWorth float64
	// Boot is how long somebody waits who finds no warm GPU; 0: as long as the pool's boots take, and until that is
	// known, five minutes.
	Boot time.Duration
	// MaxGPUs is the most GPUs to keep warm at once.
	MaxGPUs int
}

// WithDefaults fills what is zero, but for the boot: waiting worth 32, at most 8 GPUs.
func (c Config) WithDefaults() Config {
	if c.WaitWorth == 0 {
		c.WaitWorth = 32
	}
	if c.MaxGPUs == 0 {
		c.MaxGPUs = 8
	}
	return c
}

// Validate says what is wrong with c, or returns nil.
func (c Config) Validate() error {
	switch {
	case !(c.WaitWorth > 0) || c.WaitWorth > 1e6:
		return fmt.Errorf("wait_worth: %v is not above 0, and at most 1000000", c.WaitWorth)
	case c.Boot < 0 || c.Boot > 24*time.Hour:
		return fmt.Errorf("boot: %v is not between 0 and 24h", c.Boot)
	case c.MaxGPUs < 1 || c.MaxGPUs > forecast.MaxLevels:
		return fmt.Errorf("max_gpus: %d is not between 1 and %d", c.MaxGPUs, forecast.MaxLevels)
	default:
		return nil
	}
}

// Choice is what was decided about one window, and why.
type Choice struct {
	Window predict.Window
	GPUs   int    // to keep warm beyond those in use
	Why    string // empty where nothing was weighed

	Statistics int // what Raise was given: GPUs without what evidence holds
}

// Choose takes over what statistics hold from now on. Of times to come it keeps
// nothing: there is time to decide when they are near, and what evidence says of
// them goes through the gate, which bounds its cost, and comes in with Raise.
func Choose(p predict.Prediction, c Config) []Choice {
	n := p.Now
	choices := []Choice{{
		Window: predict.Window{Start: n.Start, End: n.End, Forecast: n.Forecast, Statistics: n.Forecast,
			Source: predict.Statistics, Reason: predict.Recent},
		GPUs: min(n.Held.Levels, c.MaxGPUs), Why: n.Held.Explain(),
	}}
	for _, w := range p.Windows {
		if w.Start.Before(n.End) {
			w.Start = n.End
		}
		if w.Start.Before(w.End) {
			choices = append(choices, Choice{Window: w})
		}
	}
	return choices
}

// Explain says why GPUs are kept warm, of those that are kept first, or why none are. It is empty without choices.
func Explain(choices []Choice) string {
	if len(choices) == 0 {
		return ""
	}
	for _, c := range choices {
		if c.GPUs > 0 {
			return c.Why
		}
	}
	return choices[0].Why
}

// Windows joins the choices into as few reservations as say the same: each GPU
// level is one run of neighbouring windows, and levels that run alike are one
// reservation. A GPU that is worth keeping for hours is then one promise, not
// one for every window.
func Windows(choices []Choice) []contract.AgentWindow {
	top := 0
	for _, c := range choices {
		top = max(top, c.GPUs)
	}
	windows := []contract.AgentWindow{} // an empty plan is a plan, and the wire knows no null
	open := map[run]int{}
	for level := 1; level <= top; level++ {
		for _, r := range findRuns(choices, level) {
			i, ok := open[r]
			if !ok {
				i = len(windows)
				open[r] = i
				windows = append(windows, contract.AgentWindow{
					Start: choices[r.first].Window.Start, End: choices[r.last].Window.End,
					ReasonCode: choices[r.first].Window.Reason.Code(),
				})
			}
			windows[i].GPUs++
			windows[i].Probability = largestChance(choices, r, level)
		}
	}
	return windows
}

// run is a stretch of neighbouring choices.
type run struct{ first, last int }

func findRuns(choices []Choice, level int) []run {
	var found []run
	for i, c := range choices {
		if c.GPUs < level {
			continue
		}
		if n := len(found); n > 0 && found[n-1].last == i-1 {
			found[n-1].last = i
			continue
		}
		found = append(found, run{i, i})
	}
	return found
}

// largestChance is the chance that the level is needed in the run's best window.
func largestChance(choices []Choice, r run, level int) float64 {
	best := 0.0
	for _, c := range choices[r.first : r.last+1] {
		best = max(best, c.Window.Forecast.AtLeast(level))
	}
	return best
}
