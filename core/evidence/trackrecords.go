package evidence

import (
	"errors"
	"fmt"
	"time"
)

// Config configures TrackRecords.
type Config struct {
	// Allowance is how many GPU-hours a source may lose before it has earned any,
	// and at most at any time; required.
	Allowance float64 `json:"allowance"`
	// Refill is the time in which a source is given one Allowance again; default
	// 30 days. The most a source can ever cost is Allowance·(1 + time/Refill).
	Refill time.Duration `json:"refill"`
}

// WithDefaults returns c with its zero fields filled in.
func (c Config) WithDefaults() Config {
	if c.Refill == 0 {
		c.Refill = 30 * 24 * time.Hour
	}
	return c
}

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c Config) Validate() error {
	switch {
	case !(c.Allowance >= 0 && c.Allowance <= 1e6):
		return fmt.Errorf("allowance: %v GPU-hours are not between 0 and 1000000", c.Allowance)
	case c.Refill < time.Hour:
		return fmt.Errorf("refill: %v is shorter than an hour", c.Refill)
	default:
		return nil
	}
}

// The most that TrackRecords keeps. What does not fit is judged by what is known of its
// kind, or not accepted.
const (
	maxKinds   = 256
	maxTenants = 1024 // of one kind
	maxOpen    = 4096
)

// TrackRecords keeps the track records of all sources. It is not safe for concurrent use.
type TrackRecords struct {
	cfg     Config
	kinds   map[string]*kind
	sources map[string]*account
	open    map[string]opened
}

// kind is what is known of one source and reason.
type kind struct {
	Source      string            `json:"source"`
	Overall     track             `json:"fleet"`
	Tenants     map[string]*track `json:"tenants"`
	MeanChance  float64           `json:"said"` // mean calibrated chance of its records
	Acting      gainRecord        `json:"standing"`
	Calibration calibration       `json:"voice"`
}

// account is what is known of one source.
type account struct {
	Budget      spendingBudget `json:"purse"`
	Acting      gainRecord     `json:"standing"` // of acting on its records
	Calibration gainRecord     `json:"voice"`    // of its weight in forecasts
}

// opened is a record that is not closed yet.
type opened struct {
	Record   Record         `json:"record"`
	Decision Decision       `json:"decision"`
	Jobs     [sizes]float64 `json:"jobs"`     // claimed
	Hours    [sizes]float64 `json:"hours"`    // GPU-hours of the whole hold
	Worth    float64        `json:"worth"`    // GPU-hours that one spared boot is worth
	Reserved float64        `json:"reserved"` // GPU-hours set aside
}

// New returns empty TrackRecords.
func New(c Config) (*TrackRecords, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the evidence configuration: %w", err)
	}
	return &TrackRecords{cfg: c, kinds: map[string]*kind{}, sources: map[string]*account{},
		open: map[string]opened{}}, nil
}

// Reconfigure changes what sources may lose from now on.
func (b *TrackRecords) Reconfigure(c Config) error {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return fmt.Errorf("checking the evidence configuration: %w", err)
	}
	b.cfg = c
	return nil
}

// Errors of Consider and Close.
var (
	ErrOpen    = errors.New("evidence: a record of this id is open")
	ErrUnknown = errors.New("evidence: no record of this id is open")
)

// Consider decides about a record and opens it under an id of the caller's, to be
// judged when it is closed, accepted or not. The cost of an accepted one is set
// aside until then. A record that is invalid, too late or one too many is not
// opened.
func (b *TrackRecords) Consider(now time.Time, id string, r Record, t Terms) (Decision, error) {
	if _, ok := b.open[id]; ok {
		return Decision{}, fmt.Errorf("considering record %q: %w", id, ErrOpen)
	}
	t = t.WithDefaults()
	if r.Check() != nil || !t.isSound() {
		return Decision{Verdict: Invalid}, nil
	}
	k, s := b.kindOf(r), b.accountOf(r.Source)
	if k == nil || s == nil || len(b.open) >= maxOpen {
		return Decision{Verdict: Crowded}, nil
	}
	d := t.chooseSize(r, k.beliefIn(r))
	if !d.Until.After(now) {
		return Decision{Verdict: Late}, nil
	}
	s.Budget.refillUntil(now, b.cfg)
	o := opened{Record: r, Worth: t.WaitPrice / t.GPUPrice * t.Boot.Hours()}
	for i := range sizes {
		o.Jobs[i], o.Hours[i] = t.jobsServed(r, i), t.hoursHeld(r, i)
	}
	o.Decision, o.Reserved = s.allowSpending(d, k.Acting.Demoted, o.Hours[d.Size])
	b.open[id] = o
	return o.Decision, nil
}

// allowSpending holds an accepted decision against the track records and the budget: what the
// budget cannot cover whole is held in part.
func (s *account) allowSpending(d Decision, demoted bool, hours float64) (Decision, float64) {
	if d.Verdict == Accepted && (demoted || s.Acting.Demoted) {
		d.Verdict = Demoted
	}
	if each := hours / float64(d.GPUs); d.Verdict == Accepted && s.Budget.Balance < hours {
		d.GPUs = int(s.Budget.Balance / each)
		hours = each * float64(d.GPUs)
		if d.GPUs == 0 {
			d.Verdict = Broke
		}
	}
	if d.Verdict != Accepted {
		d.GPUs = 0
		return d, 0
	}
	s.Budget.reserveHours(hours)
	return d, hours
}

// Outcome is what came of a record, seen at the end of its hold. Spared waits are
// in boots, so that a job which would have waited for a whole boot and found warm
// GPUs instead counts 1.
type Outcome struct {
	Saved  [sizes]float64 // by each judged size, had it been held: of waits that statistics would have left
	Idle   [sizes]float64 // GPU-hours that each size would have idled, beyond statistics
	Spared float64        // what an accepted record really spared
	Spent  float64        // GPU-hours that an accepted record really idled
}

// Close judges an open record by its outcome and takes it off the record. Numbers
// that cannot be are brought within what can be.
func (b *TrackRecords) Close(now time.Time, id string, out Outcome) error {
	o, ok := b.open[id]
	if !ok {
		return fmt.Errorf("closing record %q: %w", id, ErrUnknown)
	}
	delete(b.open, id)
	k, s := b.kindOf(o.Record), b.accountOf(o.Record.Source)
	var came result
	for i := range sizes {
		came.saved[i] = clampFinite(out.Saved[i]/o.Jobs[i], 0, maxSaved)
		came.idle[i] = clampFinite(out.Idle[i]/o.Hours[i], 0, 1)
	}
	k.learnResult(o.Record, came)
	if o.Decision.Verdict != Unworthy { // what the gate refuses does no harm
		s.judgeRecord(&k.Acting, (*account).actingRecord, o.realizedGain(came))
	}
	s.Budget.refillUntil(now, b.cfg)
	if o.Decision.Verdict == Accepted { // who held nothing spared nothing
		s.Budget.settleReservation(o.Reserved, out.Spent, o.Worth*clampFinite(out.Spared, 0, MaxGPUs), b.cfg)
	}
	return nil
}

// realizedGain is what the chosen size was worth, in parts of what its hold could have
// cost: large records and small ones count alike.
func (o opened) realizedGain(came result) float64 {
	i := o.Decision.Size
	return o.Worth*came.saved[i]*o.Jobs[i]/o.Hours[i] - came.idle[i]
}

func (s *account) actingRecord() *gainRecord      { return &s.Acting }
func (s *account) calibrationRecord() *gainRecord { return &s.Calibration }

// judgeRecord enters a close into the standing of its kind and of its source. A kind
// that is demoted is only watched, so it does not speak for its source.
func (s *account) judgeRecord(of *gainRecord, which func(*account) *gainRecord, gain float64) {
	watched := of.Demoted
	of.addGain(gain)
	if !watched {
		which(s).addGain(gain)
	}
}

// Open reports whether a record of the id is open, and what was decided.
func (b *TrackRecords) Open(id string) (Record, Decision, bool) {
	o, ok := b.open[id]
	return o.Record, o.Decision, ok
}
