package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
)

// Work is what the handlers of pools, nodes and schedules need. All fields but
// ProviderDelay and Logger are required.
type Work struct {
	Ledger       *verbs.Ledger
	Provisioners map[string]provisioners.Provisioner // by name
	// Deployment is the owner tag of every machine this installation makes.
	Deployment string
	// ProviderDelay is how long after a machine's creation its provider may not know it
	// yet. Default 1 min.
	ProviderDelay time.Duration
	// JoinToken makes what the daemon of a node needs to join; nil: machines get none.
	JoinToken func(ctx context.Context, n node.Node) (provisioners.Daemon, error)
	// Logger gets what is odd but no failure. Nil means slog.Default().
	Logger *slog.Logger
	// Metrics counts nodes that could not be asked for; nil counts nothing.
	Metrics *obs.Metrics
}

// Table returns the handlers of every kind of task but the sweep.
func (w Work) Table() map[string]Handler {
	if w.ProviderDelay == 0 {
		w.ProviderDelay = time.Minute
	}
	if w.Logger == nil {
		w.Logger = slog.Default()
	}
	return map[string]Handler{
		ledger.TaskPlan:       w.planPool,
		ledger.TaskCreateNode: w.createInstance,
		ledger.TaskCheckNode:  w.checkNode,
		ledger.TaskDeleteNode: w.removeInstance,
		ledger.TaskObserve:    w.observeCluster,
		ledger.TaskKeep:       w.keepCluster,
		ledger.TaskSchedules:  w.materialiseSchedules,
		ledger.TaskSeal:       w.sealJournal,
	}
}

// scheduleWithin bounds one run of the scheduler of a pool's jobs.
const scheduleWithin = 15 * time.Second

// planPool lets the ledger plan the pool and offers each waitlisted reservation its
// place. Whatever fails after the plan is found again by the next plan.
func (w Work) planPool(ctx context.Context, c Claim) error {
	planned, err := w.Ledger.Plan(ctx, c.Guard, c.Task.Subject)
	if err != nil {
		return fmt.Errorf("planning pool %s: %w", c.Task.Subject, err)
	}
	for _, held := range planned.Withheld {
		for _, code := range held.Codes {
			w.Metrics.Withheld(code)
		}
	}
	for _, id := range planned.Waitlisted {
		err := w.Ledger.Promote(ctx, id)
		var refused *ledger.RefusedError
		if err != nil && !errors.As(err, &refused) {
			w.Logger.WarnContext(ctx, "could not promote a waitlisted reservation", "reservation", id, "error", err)
		}
	}
	// The plan has ended its task, whose claim therefore holds the context no more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scheduleWithin)
	defer cancel()
	if err := w.Ledger.ScheduleJobs(ctx, c.Task.Subject); err != nil { // the next plan tries again
		w.Logger.WarnContext(ctx, "could not schedule jobs", "pool", c.Task.Subject, "error", err)
	}
	return nil
}

func (w Work) materialiseSchedules(ctx context.Context, c Claim) error {
	if err := w.Ledger.Materialise(ctx, c.Guard); err != nil {
		return fmt.Errorf("materialising schedules: %w", err)
	}
	return nil
}

// sealJournal seals what was added to the journal. The seals in the log are kept
// wherever the log is: who cannot write there cannot write the journal anew unseen.
func (w Work) sealJournal(ctx context.Context, c Claim) error {
	made, err := w.Ledger.SealJournal(ctx, c.Guard)
	if err != nil {
		return fmt.Errorf("sealing the journal: %w", err)
	}
	if made.Number > 0 {
		w.Logger.InfoContext(ctx, "sealed the journal", "seal", made.Anchor(), "first", made.First, "last", made.Last,
			"events", made.Count)
	}
	return nil
}

func (w Work) findProvisioner(name string) (provisioners.Provisioner, error) {
	p, ok := w.Provisioners[name]
	if !ok {
		return nil, fmt.Errorf("no provisioner %q is configured on this worker", name)
	}
	return p, nil
}

// isFresh reports whether the node's machine is so young that its provider's "not
// found" means nothing. Providers answer from replicas: a machine that was just
// made and one that is gone look the same for a while.
//
// The machine of a creation that was never answered is first met when it is to be
// removed, and was made before that.
func (w Work) isFresh(n node.Node, now time.Time) bool {
	known := n.BootingAt
	if known.IsZero() {
		known = n.RetiredAt
	}
	return known.IsZero() || now.Sub(known) < w.ProviderDelay
}

// ledgerInstance is what the provider said, in the ledger's words.
func ledgerInstance(i provisioners.Instance) ledger.Instance {
	return ledger.Instance{
		ProviderID: i.ID, Address: i.Address, Devices: i.Devices, Simulated: i.Simulated,
		Born: i.CreatedAt, Ended: i.EndedAt, CheckWithin: i.CheckWithin,
	}
}

func isEnding(p provisioners.Phase) bool {
	return p == provisioners.Terminating || p == provisioners.Terminated
}
