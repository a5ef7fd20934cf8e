package coldstart

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
)

// The policies that are compared.
const (
	Nothing   = "nothing"    // as the cluster does it: a node stays up for its suspend time
	KeepAlive = "keep_alive" // the same with a longer suspend time
	Forecast  = "forecast"   // nodes are kept up, and booted ahead, as the statistics say
	Foresight = "foresight"  // every node boots just in time: the least that waiting for nothing costs
)

// Outcome is what one policy would have come to in the period.
type Outcome struct {
	Policy string
	Keep   int64 // of KeepAlive: seconds
	Waits  Waits // of the starts that would have waited for a boot
	// IdleHours and BootHours are node-hours that are paid for and not used.
	IdleHours, BootHours float64
}

// Overhead is all node-hours that are paid for and not used.
func (o Outcome) Overhead() float64 { return o.IdleHours + o.BootHours }

// cost is in idle node-hours, when an hour of one waiting job is worth so many.
func (o Outcome) cost(worth float64) float64 {
	return worth*float64(o.Waits.Seconds)/3600 + o.Overhead()
}

// Options say what is compared.
type Options struct {
	// WaitWorth is how many idle node-hours an hour of one waiting job is worth.
	WaitWorth float64
	// KeepAlives are the suspend times that are tried, in seconds; those that are no
	// longer than the cluster's own are left out.
	KeepAlives []int64
	// Progress is told the share that is done, 0 to 1, and ends the work with its
	// error; nil is not.
	Progress func(share float64) error
}

// Report is what happened, and what would have.
type Report struct {
	Summary Summary
	Boot    Boot
	// Policies are nothing, the keep-alives by their length, forecast and foresight.
	// There are none when no start waited for a boot and its length is not given.
	Policies []Outcome
	// BestKeepAlive is the keep-alive that costs least in hindsight, and
	// EqualKeepAlive the shortest under which jobs wait no longer than under the
	// forecast: indexes into Policies, -1 for none.
	BestKeepAlive, EqualKeepAlive int
}

// Evaluate infers what happened and replays the policies. It fails if a job, the
// period, the assumptions or the options cannot be.
func Evaluate(jobs []Job, a Assumptions, p Period, o Options) (Report, error) {
	if err := check(jobs, a, p, o); err != nil {
		return Report{}, err
	}
	h := inferStarts(jobs, a, p)
	r := Report{Summary: h.summarize(), Boot: h.boot, BestKeepAlive: -1, EqualKeepAlive: -1}
	if h.boot.Basis == AtMost {
		return r, nil
	}
	if err := r.replay(h, o); err != nil {
		return Report{}, err
	}
	r.chooseKeepAlives(o.WaitWorth)
	return r, nil
}

func check(jobs []Job, a Assumptions, p Period, o Options) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("checking what is assumed: %w", err)
	}
	if err := p.validate(); err != nil {
		return err
	}
	if !(o.WaitWorth > 0 && o.WaitWorth <= 1e6) {
		return fmt.Errorf("an hour of waiting is worth %v idle node-hours: want above 0 and at most 1000000", o.WaitWorth)
	}
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			return fmt.Errorf("job %d of the history: %w", i, err)
		}
	}
	return nil
}

// replay plays every policy over every fleet, and adds up.
func (r *Report) replay(h *history, o Options) error {
	fleets := h.fleets()
	plays := []play{{policy: Nothing}}
	for _, keep := range o.KeepAlives {
		if !slices.ContainsFunc(fleets, func(f *fleet) bool { return keep <= f.suspend }) {
			plays = append(plays, play{policy: KeepAlive, keep: keep})
		}
	}
	plays = append(plays, play{policy: Forecast}, play{policy: Foresight})
	for i, p := range plays {
		p.history, p.worth, p.progress = h, o.WaitWorth, shareOf(o.Progress, i, len(plays))
		out, err := p.run(fleets)
		if err != nil {
			return fmt.Errorf("replaying %s: %w", p.policy, err)
		}
		r.Policies = append(r.Policies, out)
	}
	return nil
}

// shareOf makes the progress of one of several parts.
func shareOf(progress func(float64) error, part, parts int) func(done, of int) error {
	if progress == nil {
		return nil
	}
	return func(done, of int) error {
		return progress((float64(part) + float64(done)/float64(max(1, of))) / float64(parts))
	}
}

// play is one policy over the whole history.
type play struct {
	policy   string
	keep     int64
	worth    float64
	history  *history
	progress func(done, of int) error
}

func (p play) run(fleets []*fleet) (Outcome, error) {
	out := Outcome{Policy: p.policy, Keep: p.keep}
	waits := make([]int64, len(p.history.starts))
	for _, f := range fleets {
		got, err := p.runFleet(f, waits)
		if err != nil {
			return Outcome{}, err
		}
		out.IdleHours += got.IdleHours
		out.BootHours += got.BootHours
	}
	for i, wait := range waits {
		if wait > 0 {
			out.Waits.add(wait, p.history.jobs[p.history.starts[i].job].GPUs)
		}
	}
	out.Waits.close()
	return out, nil
}

// runFleet plays one fleet and notes how long each start waits for its last node.
func (p play) runFleet(f *fleet, waits []int64) (backtest.Outcome, error) {
	h, failed := p.history, error(nil)
	scored := backtest.Span{From: h.period.From, Last: h.period.Until}
	if p.policy == Foresight {
		return backtest.OracleWithin(f.trace, h.boot.Seconds, scored)
	}
	opt := backtest.Options{Boot: h.boot.Seconds, KeepAlive: max(f.suspend, p.keep), KeepReady: true,
		Scored: scored, Progress: p.progress, Waited: func(job int, wait int64) { f.noteWaits(job, wait, waits) }}
	if p.policy == Forecast {
		var err error
		if opt.Policy, err = newForecasters(f, h.boot.Seconds, p.worth, &failed); err != nil {
			return backtest.Outcome{}, err
		}
	}
	out, err := backtest.Run(f.trace, opt)
	if err == nil {
		err = failed
	}
	return out, err
}

func (f *fleet) noteWaits(job int, wait int64, waits []int64) {
	for _, d := range f.waits[job] {
		waits[d.start] = max(waits[d.start], wait-d.after)
	}
}

// chooseKeepAlives finds the two that are worth showing.
func (r *Report) chooseKeepAlives(worth float64) {
	forecast := slices.IndexFunc(r.Policies, func(o Outcome) bool { return o.Policy == Forecast })
	for i, o := range r.Policies {
		if o.Policy != KeepAlive {
			continue
		}
		if r.BestKeepAlive < 0 || o.cost(worth) < r.Policies[r.BestKeepAlive].cost(worth) {
			r.BestKeepAlive = i
		}
		if r.EqualKeepAlive < 0 && o.Waits.GPUSeconds <= r.Policies[forecast].Waits.GPUSeconds {
			r.EqualKeepAlive = i
		}
	}
}
