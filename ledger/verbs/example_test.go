package verbs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// One reservation, from Reserve to the claim, over SQLite in memory. The verbs of
// people decide and leave tasks behind; whoever claims a task does what it says and
// reports, as package worker does with a real provider.
func ExampleLedger() {
	ctx, now := context.Background(), clock.NewManual(monday)
	store, err := sqlledger.Open(ctx, sqlledger.Config{URL: "sqlite://:memory:", Clock: now, Unsafe: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	l, ann, err := newLab(ctx, store)
	if err != nil {
		fmt.Println(err)
		return
	}

	ten := monday.Add(time.Hour)
	promised, err := l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 2,
		Window: calendar.Interval{Start: ten, End: ten.Add(time.Hour)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(now.Now().Format("15:04"), "reservation", promised.State(), "for", promised.Cost)
	if err := workUntil(ctx, l, now, ten); err != nil {
		fmt.Println(err)
		return
	}

	held, err := l.Claim(ctx, ann, promised.ID, 0, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(now.Now().Format("15:04"), "allocation", held.State(), "with", len(held.Devices), "devices")
	// Output:
	// 09:00 reservation booked for $2.00
	// 09:54 task node.create
	// 09:59 task node.check
	// 10:00 allocation active with 2 devices
}

// newLab makes a pool of four nodes with two GPUs each, and a member of an
// organization that may use it.
func newLab(ctx context.Context, store *sqlledger.Store) (*verbs.Ledger, ledger.Actor, error) {
	if err := store.Migrate(ctx); err != nil {
		return nil, ledger.Actor{}, err
	}
	l := verbs.New(store, &ids.Sequence{}, ledger.Config{Policy: plan.Policy{Guard: time.Minute},
		CheckEvery: 5 * time.Minute, VerifyEvery: time.Hour})
	setup := ledger.SystemActor("example")
	_, err := l.CreatePool(ctx, setup, capacity.Pool{Name: "lab", Provisioner: "cloud", Type: "gpu-2", Model: "h100",
		PerNode: 2, MaxNodes: 4, Price: 2 * money.USD, Timers: capacity.Timers{MaxLease: 24 * time.Hour},
	}, learned.BootTimes{Prior50: 5 * time.Minute, Prior95: 5 * time.Minute})
	if err != nil {
		return nil, ledger.Actor{}, err
	}
	acme, err := l.CreateOrganization(ctx, setup, "acme", quota.Limits{GPUs: 8})
	return l, ledger.Actor{KeyID: "key_ann", Kind: ledger.PersonKey, OrganizationID: acme.ID, Role: ledger.Member,
		Via: "api"}, err
}

// workUntil does tasks as they become due, until the clock stands at end.
func workUntil(ctx context.Context, l *verbs.Ledger, now *clock.Manual, end time.Time) error {
	for now.Now().Before(end) {
		if err := doDueTasks(ctx, l, now.Now()); err != nil {
			return err
		}
		next, err := l.NextTask(ctx)
		if err != nil {
			return err
		}
		if next.IsZero() || next.After(end) {
			next = end
		}
		now.Set(next)
	}
	return nil
}

// doDueTasks claims and does all tasks that are due. Each report carries the guard of
// its claim: a worker whose claim was given to another cannot write any more.
func doDueTasks(ctx context.Context, l *verbs.Ledger, now time.Time) error {
	for {
		due, err := l.Dispatch(ctx, 100, time.Minute)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, row := range due {
			task, err := l.ClaimTask(ctx, row.ID, row.Attempt, time.Minute)
			if err != nil {
				return err
			}
			if task.Kind != ledger.TaskPlan {
				fmt.Println(now.Format("15:04"), "task", task.Kind)
			}
			if err := doTask(ctx, l, ledger.Guard{TaskID: task.ID, Fence: task.Fence}, task); err != nil {
				return err
			}
		}
	}
}

// doTask does one task, with a provider that always succeeds.
func doTask(ctx context.Context, l *verbs.Ledger, g ledger.Guard, task ledger.Task) error {
	switch task.Kind {
	case ledger.TaskPlan:
		_, err := l.Plan(ctx, g, task.Subject)
		return err
	case ledger.TaskCreateNode:
		// The intent is committed with its token here, before the provider is asked.
		if _, err := l.BeginCreate(ctx, g, task.Subject); err != nil {
			return err
		}
		return l.ReportCreated(ctx, g, task.Subject, ledger.Instance{ProviderID: "i-1"})
	case ledger.TaskCheckNode:
		if _, _, _, err := l.BeginCheck(ctx, g, task.Subject); err != nil {
			return err
		}
		return l.ReportUp(ctx, g, task.Subject, ledger.Instance{Devices: []capacity.Device{
			{UUID: "GPU-0", Model: "h100"}, {UUID: "GPU-1", Index: 1, Model: "h100"}}})
	default:
		return l.RetryTask(ctx, g, time.Hour, "not part of this example")
	}
}
