package backtest

import "slices"

// Outcome is what a replay came to, over the scored window.
type Outcome struct {
	Jobs      int     // scored
	ZeroWaits int     // that found their GPUs warm
	Mean      float64 // mean wait in seconds
	P95       int64   // the wait at rank ceil(0.95 n), in seconds
	Longest   int64   // seconds
	BusyHours float64 // GPU-hours of jobs, as if none had waited
	IdleHours float64 // GPU-hours paid for and not used
	BootHours float64 // GPU-hours paid for while booting
	WaitHours float64 // of all jobs together

	idle, boot int64 // GPU-seconds
	waits      []int64
}

func (o *Outcome) addWait(wait int64) { o.waits = append(o.waits, wait) }

// IdleShare and BootShare are in percent of the busy GPU-hours, as is Overhead.
func (o Outcome) IdleShare() float64 { return percent(o.IdleHours, o.BusyHours) }

// BootShare is the booting part of Overhead.
func (o Outcome) BootShare() float64 { return percent(o.BootHours, o.BusyHours) }

// Overhead is the GPU time that was paid for and did not compute.
func (o Outcome) Overhead() float64 { return o.IdleShare() + o.BootShare() }

// ZeroWaitShare is the share of jobs that did not wait, in percent.
func (o Outcome) ZeroWaitShare() float64 { return percent(float64(o.ZeroWaits), float64(o.Jobs)) }

// Cost is the whole cost in idle GPU-hours, when an hour of one waiting job is
// worth r of them.
func (o Outcome) Cost(r float64) float64 { return r*o.WaitHours + o.IdleHours + o.BootHours }

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// sumScores adds up what is scored.
func (o *Outcome) sumScores(t Trace, scored Span) {
	busy := int64(0)
	for _, j := range t.Jobs {
		busy += int64(j.GPUs) * max(0, min(j.Submit+j.Duration, scored.Last)-max(j.Submit, scored.From))
	}
	o.BusyHours, o.IdleHours, o.BootHours = toHours(busy), toHours(o.idle), toHours(o.boot)
	o.Jobs = len(o.waits)
	slices.Sort(o.waits)
	sum := int64(0)
	for _, w := range o.waits {
		sum += w
		if w == 0 {
			o.ZeroWaits++
		}
	}
	o.WaitHours = toHours(sum)
	if n := o.Jobs; n > 0 {
		o.Mean = float64(sum) / float64(n)
		o.P95, o.Longest = o.waits[(95*n+99)/100-1], o.waits[n-1]
	}
	o.waits = nil
}

func toHours(seconds int64) float64 { return float64(seconds) / 3600 }
