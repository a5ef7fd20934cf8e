package rig

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
)

// The pool that everything is booked in: 1,250 nodes of 8 GPUs.
const (
	PoolName  = "bench"
	PoolNodes = 1250
	PerNode   = 8
	machine   = "bench-8"
	model     = "h100-80g"
)

// Installation is a database with a schema, one organization that may hold more
// than is ever asked for, its key, and the pool.
type Installation struct {
	*Database
	Key    obs.Secret
	Actor  ledger.Actor
	pepper string
}

// Install makes an installation on the server. boot is how long the pool
// believes that a node takes.
func Install(ctx context.Context, server string, boot time.Duration) (*Installation, error) {
	db, err := NewDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	i := &Installation{Database: db}
	if err := i.startServices(ctx, boot); err != nil {
		return nil, errors.Join(err, db.Drop(ctx))
	}
	return i, nil
}

func (i *Installation) startServices(ctx context.Context, boot time.Duration) error {
	store, l, err := openLedger(ctx, i.URL, 1)
	if err != nil {
		return err
	}
	return errors.Join(i.fillStore(ctx, store, l, boot), store.Close())
}

func (i *Installation) fillStore(
	ctx context.Context, store *sqlledger.Store, l *verbs.Ledger, boot time.Duration) error {
	if err := store.Migrate(ctx); err != nil {
		return fmt.Errorf("migrating: %w", err)
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("drawing a pepper: %w", err)
	}
	i.pepper = "1:" + hex.EncodeToString(secret)
	pepper, err := keys.ParsePepper(i.pepper)
	if err != nil {
		return err
	}
	key, text, err := auth.Minter{Environment: "bench", Pepper: pepper,
		Random: rand.Reader}.Mint(ledger.Key{Name: "bench"})
	if err != nil {
		return fmt.Errorf("minting a key: %w", err)
	}
	if _, err = l.Bootstrap(ctx, "bench", quota.Limits{GPUs: ledger.MaxGPUs, SpeculationPerDay: 1_000_000 * money.USD},
		key); err != nil {
		return fmt.Errorf("bootstrapping: %w", err)
	}
	found, err := l.Authenticate(ctx, key.ID)
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	i.Key = text
	i.Actor = found.Actor()
	return createPool(ctx, l, PoolName, boot)
}

func createPool(ctx context.Context, l *verbs.Ledger, name string, boot time.Duration) error {
	_, err := l.CreatePool(ctx, ledger.SystemActor("bench"), capacity.Pool{
		Name: name, Provisioner: "sim", Type: machine, Model: model, PerNode: PerNode, MemoryMiB: 81_920,
		Price:    20 * money.USD,
		MaxNodes: PoolNodes, Simulated: true,
		Timers: capacity.Timers{WarmHold: 24 * time.Hour, IdleRelease: 24 * time.Hour, MaxLease: 7 * 24 * time.Hour},
	}, learned.BootTimes{Prior50: boot, Prior95: boot})
	if err != nil {
		return fmt.Errorf("making pool %s: %w", name, err)
	}
	return nil
}

// AddPools makes further pools like the first one, and returns the names of all.
func (i *Installation) AddPools(ctx context.Context, n int) (names []string, err error) {
	store, l, err := openLedger(ctx, i.URL, 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	names = []string{PoolName}
	for at := range n {
		name := fmt.Sprintf("%s-%d", PoolName, at+1)
		if err := createPool(ctx, l, name, 5*time.Minute); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// fillStep is how many reservations Fill books at a time.
const fillStep = 1_000

// Fill books n reservations of one GPU, spread over the pools and over Hours.
func (i *Installation) Fill(ctx context.Context, n int, pools []string) (err error) {
	store, l, err := openLedger(ctx, i.URL, 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	first := firstHour(time.Now())
	for at := 0; at < n; at += fillStep {
		var batch []ledger.BatchItem
		for k := at; k < min(at+fillStep, n); k++ {
			start := first.Add(time.Duration(k*7%Hours) * time.Hour)
			batch = append(batch, ledger.BatchItem{Request: ledger.ReserveRequest{Pool: pools[k%len(pools)], GPUs: 1,
				Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}}})
		}
		results, err := l.ReserveMany(ctx, i.Actor, batch)
		if err != nil {
			return fmt.Errorf("filling pools: %w", err)
		}
		for _, r := range results {
			if r.Err != nil {
				return fmt.Errorf("filling pools: %w", r.Err)
			}
		}
	}
	return nil
}

// openLedger opens the ledger as the forewarm command does. Processes on one
// database differ in seed.
func openLedger(ctx context.Context, database string, seed uint64) (*sqlledger.Store, *verbs.Ledger, error) {
	store, err := sqlledger.Open(ctx, sqlledger.Config{URL: database, Clock: clock.System{}, Seed: seed})
	if err != nil {
		return nil, nil, fmt.Errorf("opening the ledger: %w", err)
	}
	return store, verbs.New(store, ids.UUID{}, ledger.Config{CheckEvery: 50 * time.Millisecond}), nil
}
