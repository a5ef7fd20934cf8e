package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
	"github.com/forewarm/forewarm/worker"
	"github.com/forewarm/forewarm/worker/queue/memqueue"
)

const (
	bootTime = 50 * time.Millisecond // of the simulated cloud's machines
	warmIn   = 5 * time.Minute       // everything must be warm by then
)

// Warm books n reservations of one GPU each and has a worker with a simulated
// cloud make them ready. The worker has ended when it returns. The ids come back
// in the order in which they were booked.
func (i *Installation) Warm(ctx context.Context, n int) (ids []string, err error) {
	store, l, err := openLedger(ctx, i.URL, 2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	start := time.Now().UTC().Truncate(time.Second).Add(time.Minute)
	for range n {
		r, err := l.Reserve(ctx, i.Actor, ledger.ReserveRequest{Pool: PoolName, GPUs: 1,
			Window: calendar.Interval{Start: start, End: start.Add(4 * time.Hour)}})
		if err != nil {
			return nil, fmt.Errorf("reserving: %w", err)
		}
		ids = append(ids, r.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, warmIn)
	defer cancel()
	w, err := newSimulatedWorker(l)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	waited := i.untilReady(ctx, n)
	cancel()
	return ids, errors.Join(waited, <-ended)
}

// runWorker runs a worker with a simulated cloud until it is told that it is done.
func runWorker(ctx context.Context, database string) (http.Handler, func() error, error) {
	store, l, err := openLedger(ctx, database, uint64(os.Getpid())) //nolint:gosec // a pid is not negative
	if err != nil {
		return nil, nil, err
	}
	w, err := newSimulatedWorker(l)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return http.NotFoundHandler(), func() error { cancel(); return errors.Join(<-ended, store.Close()) }, nil
}

func newSimulatedWorker(l *verbs.Ledger) (*worker.Worker, error) {
	cloud, err := sim.New(sim.Config{Name: "sim", Seed: 1, Offers: []sim.Offer{{
		Type: machine, Model: model, GPUs: PerNode, MemoryMiB: 81_920, Price: provisioners.Price(20 * money.USD),
		Boot: sim.Boot{P50: bootTime, P95: bootTime, Min: bootTime},
	}}}, clock.System{})
	if err != nil {
		return nil, fmt.Errorf("making the simulated cloud: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	w, err := worker.New(l, memqueue.New(log), []provisioners.Provisioner{cloud}, worker.Config{
		Deployment: "bench", Logger: log, Rand: rand.New(rand.NewPCG(1, 1)), //nolint:gosec // jitter needs no secrecy
	})
	if err != nil {
		return nil, fmt.Errorf("making the worker: %w", err)
	}
	return w, nil
}

// untilReady waits until n reservations are ready.
func (i *Installation) untilReady(ctx context.Context, n int) error {
	conn, err := pgx.Connect(ctx, i.URL)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		var ready int
		if err := conn.QueryRow(ctx,
			"SELECT count(*) FROM reservations WHERE state = 'ready'").Scan(&ready); err != nil {
			return fmt.Errorf("counting ready reservations: %w", err)
		}
		if ready >= n {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("only %d of %d reservations became ready: %w", ready, n, ctx.Err())
		}
	}
}
