// Package ledger is the vocabulary of the single source of truth: what is stored,
// the port of the store that keeps it, and the errors of its verbs.
//
// Package verbs changes it; sqlledger stores it; ledgertest is the contract of
// every store. Nothing else in the program changes stored state, and queues,
// loops and caches hold nothing that must survive.
package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/plan"
)

// Config tunes the ledger. The zero value is made whole by WithDefaults.
type Config struct {
	Policy plan.Policy
	// ConfirmGone is how long apart the provider must have said twice that a
	// machine is gone.
	ConfirmGone time.Duration
	// StockOut is how long a pool does not ask again after the provider had
	// nothing; it doubles with each refusal in a row, up to 16 times.
	StockOut time.Duration
	// CheckEvery is how often a booting node is looked at.
	CheckEvery time.Duration
	// RemoveEvery is how soon a machine that is being removed is looked at again;
	// it doubles with each look, up to 128 times. Zero means CheckEvery.
	RemoveEvery time.Duration
	// VerifyEvery is how often a ready node is looked at.
	VerifyEvery time.Duration
	// DeadMan is after how long a machine that nobody renews ends by itself, once
	// nothing runs on it, where its provisioner can arrange that; it is renewed
	// when half of it is over. Negative: never.
	DeadMan time.Duration
	// SweepEvery is how often a provider's list is compared with the ledger.
	SweepEvery time.Duration
	// ObserveEvery is how often an observed cluster is looked at.
	ObserveEvery time.Duration
	// Ahead is how far ahead schedules are materialised.
	Ahead time.Duration
	// ForecastsPerDay is how many forecasts one key may add in a UTC day: a key
	// that is lost must not fill the disk. An agent with four sources that states a
	// day in hours every five minutes adds 28,000.
	ForecastsPerDay int
	// BatchTime is how long one batch may be decided on, while others wait: less than
	// the time that they wait for what somebody holds.
	BatchTime time.Duration
	// TenantsSeeNodes shows all nodes and devices to every tenant, for the teams of
	// one company: see Sight.
	TenantsSeeNodes bool
	// AwaitDaemons keeps a node whose machine was given a token for its daemon booting until that
	// has reported, and gives up one whose daemon finds a GPU unhealthy.
	AwaitDaemons bool
	// WorkersApart says that workers are other processes, which may all be gone: without
	// one no wait is estimated, and explanations say so.
	WorkersApart bool
	// Seals is the key that seals the journal; zero: it is not sealed.
	Seals SealKey
	// SealMemory remembers the newest seal that this process has seen; nil: seals
	// that are removed are not missed.
	SealMemory SealMemory
	// PepperCheck is the same for the same pepper, under which keys are hashed, and
	// tells nothing of it; empty: none is kept.
	PepperCheck string
	// Scheduling is how jobs are scheduled, which may change while verbs run; nil: by the defaults.
	Scheduling *LiveScheduling
	// Cycles keeps what the scheduler decides, and on what; nil: nothing is kept.
	Cycles CycleRecorder
	// Fairness is how use is charged and forgotten; zero: fairshare.Default.
	Fairness fairshare.Policy
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	c.Policy = c.Policy.WithDefaults()
	if c.Scheduling == nil {
		c.Scheduling = NewLiveScheduling(SchedulingConfig{})
	}
	def := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	def(&c.ConfirmGone, 30*time.Second)
	def(&c.StockOut, 3*time.Minute)
	c.Policy.StockOut = c.StockOut // what is said of back-offs is said of those that there are
	def(&c.CheckEvery, 2*time.Second)
	def(&c.RemoveEvery, c.CheckEvery)
	def(&c.VerifyEvery, time.Minute)
	def(&c.DeadMan, 24*time.Hour)
	def(&c.SweepEvery, time.Minute)
	def(&c.ObserveEvery, 10*time.Second)
	def(&c.Ahead, 14*24*time.Hour)
	def(&c.BatchTime, 3*time.Second)
	if c.ForecastsPerDay == 0 {
		c.ForecastsPerDay = 200_000
	}
	if c.Fairness == (fairshare.Policy{}) {
		c.Fairness = fairshare.Default()
	}
	return c
}
