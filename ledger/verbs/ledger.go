// Package verbs offers every operation on the ledger as one value. Each verb is
// one transaction: it locks what it decides on, lets core decide, and writes
// the next state, the event that records it and the tasks it causes, all
// together or not at all. Verbs that wait at the same time share a transaction.
package verbs

import (
	"context"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
	"github.com/forewarm/forewarm/ledger/internal/jobs"
	"github.com/forewarm/forewarm/ledger/internal/journal"
	"github.com/forewarm/forewarm/ledger/internal/measure"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/preview"
	"github.com/forewarm/forewarm/ledger/internal/report"
	"github.com/forewarm/forewarm/ledger/internal/setup"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
	"github.com/forewarm/forewarm/ledger/internal/work"
)

// Ledger offers the verbs, by noun. What it holds is a copy of what is stored, so
// it can be lost at any time. It is safe for concurrent use.
type Ledger struct {
	engine *txn.Engine
	tenancy.Tenancy
	booking.Booking
	fleet.Fleet
	fleet.Holds
	jobs.Jobs
	work.Tasks
	journal.Journal
	measure.Forecasting
	preview.Previews
	report.Reporting
	setup.Setup
}

// Waits estimates how long bookings wait.
type Waits = outlook.Waits

// New returns a ledger over the store.
func New(store ledger.Store, source ids.Source, cfg ledger.Config) *Ledger {
	return newLedger(txn.NewEngine(store, source, cfg))
}

func newLedger(e *txn.Engine) *Ledger {
	return &Ledger{
		engine:      e,
		Tenancy:     tenancy.Tenancy{Engine: e},
		Booking:     booking.Booking{Engine: e},
		Fleet:       fleet.Fleet{Engine: e},
		Holds:       fleet.Holds{Engine: e},
		Jobs:        jobs.Jobs{Engine: e},
		Tasks:       work.Tasks{Engine: e},
		Journal:     journal.Journal{Engine: e},
		Forecasting: measure.Forecasting{Engine: e},
		Previews:    preview.Previews{Engine: e},
		Reporting:   report.Reporting{Engine: e},
		Setup:       setup.Setup{Engine: e},
	}
}

// Operation is a request as code: it calls verbs of the ledger that it is given,
// which work in one transaction, and returns what the request answers.
type Operation func(ctx context.Context, l *Ledger) (status int, answer []byte, err error)

func (op Operation) bound() txn.BoundOperation {
	return func(ctx context.Context, e *txn.Engine) (int, []byte, error) { return op(ctx, newLedger(e)) }
}

// Once is that of the engine, with an operation on all verbs.
func (l *Ledger) Once(ctx context.Context, actor ledger.Actor, o ledger.Once, op Operation) (
	status int, body []byte, replayed bool, err error) {
	return l.engine.Once(ctx, actor, o, op.bound())
}

// DryRun is that of Previews, with an operation on all verbs.
func (l *Ledger) DryRun(ctx context.Context, actor ledger.Actor, op Operation) (ledger.Effect, []byte, error) {
	return l.Previews.DryRun(ctx, actor, op.bound())
}

// MakePlan is that of Previews, with an operation on all verbs.
func (l *Ledger) MakePlan(ctx context.Context, actor ledger.Actor, p ledger.Preview, op Operation,
	show func(ledger.Effect, []byte) ([]byte, error)) (ledger.Preview, error) {
	return l.Previews.MakePlan(ctx, actor, p, op.bound(), show)
}

// ApplyPlan is that of Previews, with an operation on all verbs.
func (l *Ledger) ApplyPlan(ctx context.Context, actor ledger.Actor, id string, op Operation) (ledger.Preview, error) {
	return l.Previews.ApplyPlan(ctx, actor, id, op.bound())
}

// ExplainRequest is that of Reporting, with an operation on all verbs.
func (l *Ledger) ExplainRequest(ctx context.Context, actor ledger.Actor, op Operation) (ledger.Explanation, error) {
	return l.Reporting.ExplainRequest(ctx, actor, op.bound())
}

// UnheardBy is that of jobs.
func (l *Ledger) UnheardBy(r ledger.Reader, j job.Job) ([]string, error) { return jobs.UnheardBy(r, j) }

// ForeseeSubmitted is that of jobs.
func (l *Ledger) ForeseeSubmitted(ctx context.Context, all []job.Job) (map[string]ledger.QueuedJob, error) {
	return jobs.ForeseeSubmitted(ctx, l.Jobs, all)
}

// DecideNow is that of jobs.
func (l *Ledger) DecideNow(r ledger.Reader, poolID string) (scheduler.Record, error) {
	return jobs.DecideNow(l.Jobs, r, poolID)
}

// Scheduling is how jobs are scheduled, as it is by now.
func (l *Ledger) Scheduling() *ledger.LiveScheduling { return l.engine.Config.Scheduling }

// Store returns the port, for reads that need no verb.
func (l *Ledger) Store() ledger.Store { return l.engine.Store }

// Waiting returns how many verbs wait in this process: for their turn, and for rows
// that somebody else holds, a large batch among them.
func (l *Ledger) Waiting() (turn, row int) { return l.engine.Waiting() }
