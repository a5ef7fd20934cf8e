package backtest

import (
	"fmt"
	"math"
	"strings"
	"time"

	core "github.com/forewarm/forewarm/core/backtest"
)

// Report is what a backtest found. Its JSON names are stable.
type Report struct {
	Version     int          `json:"version"` // of this form: 1
	History     Past         `json:"history"`
	Settings    Settings     `json:"settings"`
	Policies    []Row        `json:"policies"` // in the order of the table
	BreakEven   *BreakEven   `json:"break_even"`
	WeakSpots   []Spot       `json:"weak_spots"` // the largest first, hours before sizes
	Advice      Advice       `json:"recommendation"`
	Frontier    []Point      `json:"frontier"` // by policy, then by setting
	Budgets     []Budget     `json:"equal_overhead"`
	Calibration []Calibrated `json:"calibration"` // of the chance that demand rises within ten minutes
	Week        [7][24]Hour  `json:"week"`        // from Monday 00:00, in the zone of the settings
}

// Past describes the history. Scored is the part that the table is about.
type Past struct {
	From       time.Time `json:"from"` // the first submission
	To         time.Time `json:"to"`   // the last submission
	ScoredFrom time.Time `json:"scored_from"`
	Jobs       int       `json:"jobs"`
	Scored     int       `json:"scored_jobs"`
	Tenants    int       `json:"tenants"`
	GPUs       int       `json:"largest_job_gpus"`
	BusyHours  float64   `json:"busy_gpu_hours"` // scored
	Silence    *Silence  `json:"silence"`        // null where there is none of note
	Rows       Counts    `json:"rows"`
	// FirstFuture is when the first job was submitted of those that lie after now; absent where there is none.
	FirstFuture time.Time `json:"first_future,omitzero"`
}

// Settings are what the report was made with.
type Settings struct {
	WaitWorth   float64  `json:"wait_worth"`    // idle GPU-hours for an hour of one waiting job
	GPUPrice    *float64 `json:"gpu_price_usd"` // an hour
	WaitPrice   *float64 `json:"wait_price_usd"`
	BootSeconds int64    `json:"boot_seconds"`
	Zone        string   `json:"zone"`
}

// Row is one policy. What is not known is null.
type Row struct {
	Policy    string   `json:"policy"`
	Label     string   `json:"label"`
	Jobs      int      `json:"jobs"` // that the waits are of
	ZeroWait  *float64 `json:"zero_wait_percent"`
	Mean      *float64 `json:"mean_wait_seconds"`
	P95       *float64 `json:"p95_wait_seconds"`
	WaitHours *float64 `json:"wait_hours"`         // of all jobs together
	Saved     *float64 `json:"hours_saved"`        // of waiting, against nothing kept
	IdleHours *float64 `json:"idle_gpu_hours"`     // paid for and not used
	BootHours *float64 `json:"boot_gpu_hours"`     // paid for while booting
	Waste     *float64 `json:"waste_gpu_hours"`    // both
	WasteUSD  *float64 `json:"waste_usd"`          // both, if the price is known
	Overhead  *float64 `json:"overhead_percent"`   // waste of busy GPU-hours
	Cost      *float64 `json:"cost_gpu_hours"`     // waste and waiting at its worth
	GapClosed *float64 `json:"gap_closed_percent"` // of the cost that foresight would save
}

// figures are the digits after the point that a report keeps, so that one
// processor's rounding does not show.
const figures = 1e4

func roundFigure(x float64) float64 { return math.Round(x*figures) / figures }

func roundedOrNil(x float64) *float64 {
	x = roundFigure(x)
	return &x
}

// newReport puts together what the runs came to.
func (e *experiment) newReport(foresight core.Outcome) Report {
	r := Report{
		Version: 1, History: e.describePast(), Settings: e.cfg.reportSettings(),
		Frontier: e.frontierPoints(), Budgets: e.budgetRows(), Calibration: e.plans.reliability.calibrationSteps(),
	}
	r.Policies = append(r.Policies, e.actualRow())
	for _, policy := range []string{Reactive, Schedule, KeepAlive, LastWeek, Forewarm} {
		r.Policies = append(r.Policies, e.newRow(policy, e.shownTrial(policy).out, foresight))
	}
	r.Policies = append(r.Policies, e.newRow(Foresight, foresight, foresight))
	r.Week, r.WeakSpots = e.whereWaiting()
	e.fillAdvice(&r)
	return r
}

func (e *experiment) describePast() Past {
	t := e.past.trace
	first, from, last := t.Window()
	out := e.shownTrial(Reactive).out
	p := Past{
		From: e.timeAt(first), ScoredFrom: e.timeAt(from), To: e.timeAt(last), Jobs: len(t.Jobs), Scored: out.Jobs,
		Tenants: len(t.Tenants), BusyHours: roundFigure(out.BusyHours), Rows: e.past.counts, FirstFuture: e.past.future.UTC(),
	}
	for _, j := range t.Jobs {
		p.GPUs = max(p.GPUs, j.GPUs)
	}
	if s := longestSilence(t); s.to-s.from > max((last-first)/4, 7*24*3600) {
		p.Silence = &Silence{From: e.timeAt(s.from), To: e.timeAt(s.to)}
	}
	return p
}

// Silence is a long time without a job: more than a week, and than a quarter of
// the history. One row with a wrong date makes one, and spoils the rest.
type Silence struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// longestSilence returns the longest time between two submissions.
func longestSilence(t core.Trace) span {
	longest := span{}
	for i, j := range t.Jobs[1:] {
		if before := t.Jobs[i].Submit; j.Submit-before > longest.to-longest.from {
			longest = span{before, j.Submit}
		}
	}
	return longest
}

func (e *experiment) timeAt(second int64) time.Time { return time.Unix(second, 0).In(e.cfg.Zone) }

func (c Config) reportSettings() Settings {
	s := Settings{WaitWorth: c.WaitWorth, BootSeconds: c.bootSeconds(), Zone: c.Zone.String()}
	if c.GPUPrice > 0 {
		s.GPUPrice, s.WaitPrice = roundedOrNil(c.GPUPrice), roundedOrNil(c.GPUPrice*c.WaitWorth)
	}
	return s
}

func (e *experiment) newRow(policy string, o, foresight core.Outcome) Row {
	reactive := e.shownTrial(Reactive).out
	r := Row{Policy: policy, Label: e.labelOf(policy), Jobs: o.Jobs}
	if o.Jobs == 0 {
		return r
	}
	waste := o.IdleHours + o.BootHours
	r.ZeroWait, r.Mean, r.P95, r.WaitHours = roundedOrNil(o.ZeroWaitShare()), roundedOrNil(o.Mean),
		roundedOrNil(float64(o.P95)),
		roundedOrNil(o.WaitHours)
	r.Saved, r.IdleHours, r.BootHours, r.Waste = roundedOrNil(reactive.WaitHours-o.WaitHours),
		roundedOrNil(o.IdleHours),
		roundedOrNil(o.BootHours), roundedOrNil(waste)
	r.Cost, r.GapClosed = roundedOrNil(o.Cost(e.cfg.WaitWorth)),
		roundedOrNil(core.GapClosed(reactive, o, foresight, e.cfg.WaitWorth))
	if o.BusyHours > 0 {
		r.Overhead = roundedOrNil(o.Overhead())
	}
	if e.cfg.GPUPrice > 0 {
		r.WasteUSD = roundedOrNil(waste * e.cfg.GPUPrice)
	}
	return r
}

// labelOf is what the table calls a policy.
func (e *experiment) labelOf(policy string) string {
	switch policy {
	case Reactive:
		return "reactive, nothing kept"
	case Schedule:
		return "fixed 09–18 schedule"
	case KeepAlive:
		return "keep-alive " + e.shownTrial(KeepAlive).setting + " (best in hindsight)"
	case LastWeek:
		return "last week, same hour"
	case Forewarm:
		return "forewarm, statistics"
	default:
		return "perfect foresight"
	}
}

// formatBrief writes a time as people do: 45s, 30m, 1h30m, 2d.
func formatBrief(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
