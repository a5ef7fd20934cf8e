package agent

import (
	"context"
	"math"
	"time"

	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/contract"
)

// useObserved is the use of a pool in which a cluster's own scheduler places the work.
const useObserved = "observed"

// PoolReader reads a pool, by id.
type PoolReader interface {
	Pool(ctx context.Context, idOrName string) (contract.Pool, error)
}

// bootsLast is how long what a pool says of its boots is taken for true.
const bootsLast = time.Hour

// readRoom is what is free on the nodes of the pool that are up; nothing where that is not
// known, and in a pool whose GPUs are handed out one by one. That it cannot be read is no
// reason to promise nothing. How long the pool's boots take is learned on the way.
func (a *Agent) readRoom(ctx context.Context) contract.PoolRoom {
	now := a.cfg.Clock.Now()
	if a.cfg.Pools == nil || a.cfg.Mode != Auto || a.handedOut && (a.cfg.Place.Boot > 0 || now.Before(a.bootsUntil)) {
		return contract.PoolRoom{}
	}
	pool, err := a.cfg.Pools.Pool(ctx, a.cfg.PoolID)
	if err != nil {
		a.cfg.Logger.Warn("what is free in the pool is not known; the plan counts on nothing", "error", err)
		return contract.PoolRoom{}
	}
	a.handedOut, a.bootsUntil = pool.Use != useObserved, now.Add(bootsLast)
	a.learnBoot(pool)
	if pool.Room == nil {
		return contract.PoolRoom{}
	}
	return *pool.Room
}

// learnBoot has GPUs held by how long the pool's boots take, unless the user has said that.
func (a *Agent) learnBoot(pool contract.Pool) {
	boot, longest := wholeSeconds(pool.BootP50Seconds), wholeSeconds(pool.BootP95Seconds)
	if a.cfg.Place.Boot > 0 || boot < time.Second {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	learned := boots{Boot: boot, Late: max(0, longest-boot)}
	a.bootsNew = a.bootsNew || a.boots == nil || *a.boots != learned
	a.boots = &learned
	if a.cfg.Predict.SetBoot(boot, max(0, longest-boot)) {
		a.cfg.Logger.Info("a boot takes as long as the pool's do", "boot", boot.String(), "of_95_in_100_at_most",
			longest.String(), "boots_seen", pool.BootSamples)
	}
}

// wholeSeconds are those of a duration of a day at most; what is no number is none.
func wholeSeconds(seconds float64) time.Duration {
	if !(seconds >= 0) {
		return 0
	}
	return time.Duration(math.Round(min(seconds, (24*time.Hour).Seconds()))) * time.Second
}

// choosePlaces decides what to keep warm from now on, beside what is free.
func (a *Agent) choosePlaces(rep *Report, room contract.PoolRoom) []place.Choice {
	rep.Choices = place.UseRoom(place.Choose(rep.Prediction, a.cfg.Place), room, rep.Prediction.JobGPUs)
	kept := place.Raise(rep.Choices, rep.Prediction.Holds, a.cfg.Place.MaxGPUs)
	rep.Why = place.Explain(kept)
	return kept
}
