package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/server/telemetry"
)

// beatEvery is how often a daemon reports, and atOnce how many join at a time.
const (
	beatEvery = 10 * time.Second
	atOnce    = 64
)

// daemon is one in this process, over the real protocol.
type daemon struct {
	id            string
	operator, api *client.Client
	key           obs.Secret
	seq           int64
	source        gpu.Simulated
}

// joinAll has a daemon join for each node.
func joinAll(ctx context.Context, url, key string, ids []string) ([]*daemon, error) {
	doer := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(ids), MaxConnsPerHost: 2 * atOnce}}
	operator, err := client.New(url, key, doer)
	if err != nil {
		return nil, err
	}
	all, errs := make([]*daemon, len(ids)), make([]error, len(ids))
	var group sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for at, id := range ids {
		turn <- struct{}{}
		group.Go(func() {
			all[at], errs[at] = join(ctx, url, operator, doer, id)
			<-turn
		})
	}
	group.Wait()
	return all, errors.Join(errs...)
}

func join(ctx context.Context, url string, operator *client.Client, doer client.Doer, id string) (*daemon, error) {
	token, err := operator.IssueJoinToken(ctx, id, 0)
	if err != nil {
		return nil, fmt.Errorf("issuing a token: %w", err)
	}
	patient := client.Patient{Next: doer, Wait: sleep, Limit: time.Minute}
	as, err := client.New(url, token.Token, patient)
	if err != nil {
		return nil, err
	}
	joined, err := as.JoinNode(ctx, id, contract.NodeJoin{BootID: "bench"})
	if err != nil {
		return nil, fmt.Errorf("joining: %w", err)
	}
	d := &daemon{id: id, operator: operator, source: gpu.Simulated{Seed: id, Count: rig.PerNode, MemoryMiB: 81_920}}
	for g := range rig.PerNode {
		d.source.UUIDs = append(d.source.UUIDs, rig.GPUName(id, g))
	}
	d.key = obs.NewSecret(joined.Key)
	d.api, err = client.New(url, joined.Key, patient)
	return d, err
}

func (d *daemon) beat(ctx context.Context) error {
	r, err := d.source.Look(ctx)
	if err != nil {
		return err
	}
	r.Look.Source = "nvml" // of simulated GPUs it is not kept what they do
	for g := range r.Look.GPUs {
		r.Look.GPUs[g].Health = "healthy"
	}
	d.seq++
	_, err = d.api.PutHeartbeat(ctx, d.id, contract.Heartbeat{Version: "bench", BootID: "bench", Epoch: 1, Seq: d.seq,
		Look: r.Look})
	return err
}

// beating are daemons at work.
type beating struct {
	sent  atomic.Int64
	end   context.CancelFunc
	group sync.WaitGroup
	mu    sync.Mutex
	err   error
}

// startBeating has each daemon report every ten seconds, spread evenly.
func startBeating(ctx context.Context, all []*daemon) *beating {
	b := &beating{}
	ctx, b.end = context.WithCancel(ctx)
	for at, d := range all {
		b.group.Go(func() {
			wait := beatEvery * time.Duration(at) / time.Duration(len(all))
			for sleep(ctx, wait) == nil {
				from := time.Now()
				if err := d.beat(ctx); err != nil && ctx.Err() == nil {
					b.mu.Lock()
					b.err = errors.Join(b.err, fmt.Errorf("reporting: %w", err))
					b.mu.Unlock()
					return
				}
				b.sent.Add(1)
				wait = beatEvery - time.Since(from)
			}
		})
	}
	return b
}

// turn has the daemons report, or not, from when it returns. Those who begin to, after a pause, are all written down
// soon; it waits until that is over, and they are as in operation.
func (b *beating) turn(ctx context.Context, on bool, all []*daemon) (*beating, error) {
	if on == (b != nil) {
		return b, nil
	}
	if !on {
		return nil, b.stop()
	}
	b = startBeating(ctx, all)
	return b, sleep(ctx, beatEvery+telemetry.WriteEvery)
}

// stop ends them, and returns what failed. Nil: there are none.
func (b *beating) stop() error {
	if b == nil {
		return nil
	}
	b.end()
	b.group.Wait()
	return b.err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
