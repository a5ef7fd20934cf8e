// Package predict says what a customer's environment will need: statistics for
// every window of a horizon, corrected within bounds by what a language model
// reads out of the logs, if there is one.
//
// The statistics are enough alone. Whatever the model does — nothing, nonsense,
// or the bidding of a hostile log line — the answer is a forecast: a model has
// the weight that its record earned, at most one half. It can announce no more
// GPUs than the caps and the tenant's past allow, and can say only numbers and
// a reason from a fixed list. In addition to the forecast, what it announces is
// held warm if the gate of core/evidence accepts it, and the cost of its
// mistakes is bounded. The package only predicts; it has no way to reserve.
package predict

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
)

// Source names what a forecast was made from.
type Source string

// The sources.
const (
	Statistics Source = "statistics"
	LLM        Source = "llm" // statistics corrected by a language model
)

// Reason is why need is expected. Only these exist: free text never leaves.
type Reason string

// The reasons.
const (
	Recurring Reason = "recurring"    // it was so at the same time before
	Announced Reason = "announced"    // somebody or something said when
	DataReady Reason = "data_ready"   // a download or preparation finished
	JobReady  Reason = "job_prepared" // a job was edited, built or queued
	Retry     Reason = "retry"        // something failed and will be tried again
	Other     Reason = "other"

	// Recent is the statistics' own: how it was lately. No model may give it.
	Recent Reason = "recent"
)

// Reasons returns every reason that evidence may have.
func Reasons() []Reason {
	return []Reason{Recurring, Announced, DataReady, JobReady, Retry, Other}
}

// Config configures a Predictor.
type Config struct {
	Series    forecast.Config // of each tenant's statistics
	Window    time.Duration   // width of a predicted window, whole seconds; default the Series' bin
	Horizon   time.Duration   // how far ahead; default 24 windows
	MaxGPUs   int             // no forecast speaks of more; required
	Weight    float64         // the most say a model can earn, above 0 and at most 0.5; default 0.3
	JobFactor float64         // a model may speak of this many times the largest job ever seen; default 1.5
	Pace      int             // of the forecaster's clock, see forecast.Pace; default 1
	Skew      time.Duration   // arrivals further in the future than this are refused; default 5 min
	// Terms are what waiting and idling are worth where evidence is acted on:
	// WaitPrice, GPUPrice and Boot; default 32, 1 and 5 min.
	Terms evidence.Terms
	// Late is how much longer than Terms.Boot nearly every boot takes at most: what comes by
	// the clock is held so much earlier. Default 0.
	Late time.Duration
	// Evidence bounds what a source of evidence may cost; default MaxGPUs GPU-hours
	// in 30 days.
	Evidence evidence.Config
}

// The bounds of a Config.
const (
	maxWindows = 256
	maxWeight  = 0.5
	maxTenants = 1000
)

// WithDefaults returns c with its zero fields filled in.
func (c Config) WithDefaults() Config {
	c.Series = c.Series.WithDefaults()
	if c.Window == 0 {
		c.Window = c.Series.Bin
	}
	if c.Horizon == 0 {
		c.Horizon = 24 * c.Window
	}
	if c.Weight == 0 {
		c.Weight = 0.3
	}
	if c.JobFactor == 0 {
		c.JobFactor = 1.5
	}
	if c.Pace == 0 {
		c.Pace = 1
	}
	if c.Skew == 0 {
		c.Skew = 5 * time.Minute
	}
	if c.Terms.WaitPrice == 0 {
		c.Terms.WaitPrice = 32
	}
	if c.Terms.GPUPrice == 0 {
		c.Terms.GPUPrice = 1
	}
	if c.Terms.Boot == 0 {
		c.Terms.Boot = 5 * time.Minute
	}
	if c.Evidence.Allowance == 0 {
		c.Evidence.Allowance = float64(max(0, c.MaxGPUs))
	}
	return c
}

// SetBoot has who finds no warm GPU wait for so long from now on, and nearly never for more than late beyond that. It
// reports whether either is not what it was before, by a tenth of a boot or more: plans are not made anew for less.
func (p *Predictor) SetBoot(boot, late time.Duration) (changed bool) {
	before := p.cfg.Terms.Boot
	if boot <= 0 || late < 0 || (boot-before).Abs() < before/10 && (late-p.cfg.Late).Abs() < before/10 {
		return false
	}
	p.cfg.Terms.Boot, p.cfg.Late = boot, late
	return true
}

// Knows reports whether a job of a tenant was ever observed.
func (p *Predictor) Knows(name string) bool { return p.tenants[name] != nil }

// Boot is how long who finds no warm GPU is taken to wait.
func (p *Predictor) Boot() time.Duration { return p.cfg.Terms.Boot }

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c Config) Validate() error {
	if err := c.Series.Validate(); err != nil {
		return fmt.Errorf("series: %w", err)
	}
	switch {
	case c.Window < time.Second || c.Window%time.Second != 0:
		return fmt.Errorf("window: %v is not a whole number of seconds of at least one", c.Window)
	case c.Horizon < c.Window || c.Horizon/c.Window > maxWindows:
		return fmt.Errorf("horizon: %v is not between 1 and %d windows", c.Horizon, maxWindows)
	case c.MaxGPUs < 1 || c.MaxGPUs > forecast.MaxLevels:
		return fmt.Errorf("max_gpus: %d is not between 1 and %d", c.MaxGPUs, forecast.MaxLevels)
	case !(c.Weight > 0 && c.Weight <= maxWeight):
		return fmt.Errorf("weight: %v is not in (0, %v]", c.Weight, maxWeight)
	case !(c.JobFactor >= 1 && c.JobFactor <= 10):
		return fmt.Errorf("job_factor: %v is not in [1, 10]", c.JobFactor)
	case c.Pace < 1 || c.Pace > forecast.MaxPace:
		return fmt.Errorf("pace: %d is not between 1 and %d", c.Pace, forecast.MaxPace)
	case c.Skew < 0:
		return fmt.Errorf("skew: %v is negative", c.Skew)
	case !(c.Terms.WaitPrice > 0) || !(c.Terms.GPUPrice > 0) || c.Terms.Boot <= 0:
		return errors.New("terms: want prices and a boot time above 0")
	case c.Late < 0:
		return fmt.Errorf("late: %v is negative", c.Late)
	default:
		return nil
	}
}

// Window is what is expected in [Start, End).
type Window struct {
	Start, End time.Time
	Forecast   forecast.Forecast
	Statistics forecast.Forecast // what Forecast would be without evidence
	Statement  *Statement        // what evidence said, with a say or without; nil if nothing
	Source     Source
	Reason     Reason
	Model      string // with LLM: the model's configured name
	PromptHash string // with LLM: which wording it was asked with
}

// Prediction is the answer to one Predict.
type Prediction struct {
	Tenant  string
	Issued  time.Time
	Now     Now      // what is wanted beyond what is in use, by statistics alone
	Windows []Window // arrivals in times to come, in the order of time, without gaps
	Holds   []Hold   // what evidence adds now
	Taken   []Taken  // what of it was announced for the first time or decided about now, to be told
	JobGPUs float64  // mean GPUs of the tenant's jobs, for the cost rule
	Note    *Note    // why the model had no say; nil if it had, or was not asked
}

// Note says for the log why statistics stand alone. It holds no text of a log or
// a model.
type Note struct {
	Kind llm.Kind
	Err  error
}

// Predictor predicts for any number of tenants. It is not safe for concurrent
// use.
type Predictor struct {
	cfg        Config
	forecaster *Forecaster
	model      *forecast.OnlineModel
	experts    *forecast.Experts
	tenants    map[string]*tenant
	trust      *trust // in what models say, and what they said of times to come
}

// ErrFuture says that an arrival lies in the future: a wrong clock or a forged
// row, which would close windows that have not happened yet.
var ErrFuture = errors.New("arrival lies in the future")

// New returns a Predictor. forecaster may be nil: statistics alone.
func New(c Config, forecaster *Forecaster) (*Predictor, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the prediction configuration: %w", err)
	}
	t, err := newTrust(c.Evidence)
	if err != nil {
		return nil, err
	}
	return &Predictor{cfg: c, forecaster: forecaster,
			model:   forecast.NewOnlineModel(forecast.BuiltIn(), forecast.Pace(c.Pace)),
			experts: forecast.NewExperts(), tenants: map[string]*tenant{}, trust: t},
		nil
}

// Observe counts the arrival of a job. Beside ErrFuture it fails as
// forecast.Series.Observe does, and then nothing has changed.
func (p *Predictor) Observe(now time.Time, name string, at time.Time, gpus int, as forecast.Traits) error {
	if at.After(now.Add(p.cfg.Skew)) {
		return fmt.Errorf("observing an arrival at %s: %w", at.UTC().Format(time.RFC3339), ErrFuture)
	}
	t, err := p.tenantNamed(name)
	if err != nil {
		return fmt.Errorf("observing an arrival: %w", err)
	}
	if err := t.series.Observe(at, gpus); err != nil {
		return err
	}
	t.counts[at.Unix()/p.windowSeconds()] += gpus
	t.class.waiting = append(t.class.waiting, event{At: at.Unix(), GPUs: gpus, As: as})
	if h := p.trust.evidenceOf(name); h != nil {
		h.Watch.Submit(at, gpus)
	}
	return nil
}

// Finish tells that a job that was observed is over, or was withdrawn. started is when it found its GPUs, zero if that
// is not known. What is known of it beside whether it failed is to be what it was observed as.
func (p *Predictor) Finish(name string, submitted, started time.Time, gpus int, at time.Time, as forecast.Traits) {
	t := p.tenants[name]
	if t == nil {
		return
	}
	e := event{At: max(at.Unix(), submitted.Unix()), GPUs: gpus, Submitted: submitted.Unix(), End: true, As: as}
	if started.After(submitted) {
		e.Started = started.Unix()
	}
	t.class.waiting = append(t.class.waiting, e)
}

// DemandRise returns by how many GPUs demand rose above a base in [start, end), to
// close a forecast of Now with. It knows the last two hours.
func (p *Predictor) DemandRise(name string, start, end time.Time, base int) int {
	t := p.tenants[name]
	if t == nil {
		return 0
	}
	return t.class.demandRise(start.Unix(), end.Unix(), base)
}

// Advance lets silence up to now count, for every tenant.
func (p *Predictor) Advance(now time.Time) error {
	oldest := now.Add(-2*p.cfg.Horizon).Unix() / p.windowSeconds()
	for _, t := range p.tenants {
		if err := t.series.Advance(now); err != nil {
			return err
		}
		for window := range t.counts {
			if window < oldest {
				delete(t.counts, window)
			}
		}
	}
	return nil
}

// Arrived returns the GPUs that arrived in the predicted window that begins at
// start, to close its forecast with. It knows the last two horizons.
func (p *Predictor) Arrived(name string, start time.Time) int {
	t, ok := p.tenants[name]
	if !ok {
		return 0
	}
	return t.counts[start.Unix()/p.windowSeconds()]
}

// Predict returns the forecasts of the windows from the one that now lies in. Of
// that one it still expects as much as at its start: arrivals are as likely in
// what is left of it and the window after as in any other stretch of its length.
// What a model has answered counts as of when it was asked. It always answers.
func (p *Predictor) Predict(now time.Time, name string, a Answer) Prediction {
	prediction := Prediction{Tenant: name, Issued: now, JobGPUs: 1}
	t := p.tenants[name]
	if t != nil {
		prediction.JobGPUs = t.series.JobGPUs()
	}
	prediction.Windows = p.statisticalBaseline(now, t)
	largest := p.largestJob(name)
	prediction.Note = a.note
	announced := p.ingestAnswer(now, name, a)
	prediction.Now = p.currentState(now, t)
	prediction.Holds, prediction.Taken = p.gateClaims(now, name, prediction.Now.Held.Levels, prediction.JobGPUs,
		p.holdLimit(largest))
	prediction.Taken = p.chancesOf(name, append(announced, prediction.Taken...), prediction.Windows)
	if t != nil {
		t.class.target += prediction.gpusFromEvidence()
	}
	for i := range prediction.Windows {
		p.correctWindow(&prediction.Windows[i], name, largest)
	}
	return prediction
}

// gpusFromEvidence is how many GPUs evidence holds now beyond those of statistics.
func (p Prediction) gpusFromEvidence() int {
	most := p.Now.Held.Levels
	for _, h := range p.Holds {
		if !h.Start.After(p.Issued) && h.End.After(p.Issued) {
			most = max(most, h.GPUs)
		}
	}
	return most - p.Now.Held.Levels
}

// statisticalBaseline is what statistics expect; t may be nil.
func (p *Predictor) statisticalBaseline(now time.Time, t *tenant) []Window {
	seconds := p.windowSeconds()
	first := time.Unix(now.Unix()/seconds*seconds, 0).UTC()
	windows := make([]Window, p.cfg.Horizon/p.cfg.Window)
	for i := range windows {
		start := first.Add(time.Duration(i) * p.cfg.Window)
		windows[i] = Window{Start: start, End: start.Add(p.cfg.Window), Source: Statistics, Reason: Recurring}
		if t != nil {
			windows[i].Forecast = t.series.At(start, p.cfg.Window).AtMost(p.cfg.MaxGPUs)
			windows[i].Statistics = windows[i].Forecast
		}
	}
	return windows
}

// largestJob is the largest job of a tenant, in GPUs; 0 when none was seen.
func (p *Predictor) largestJob(name string) int {
	if t := p.tenants[name]; t != nil {
		return t.series.Largest()
	}
	return 0
}

func (p *Predictor) windowSeconds() int64 { return int64(p.cfg.Window / time.Second) }
