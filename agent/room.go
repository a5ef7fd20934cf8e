package agent

import (
	"context"

	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/contract"
)

// useObserved is the use of a pool in which a cluster's own scheduler places the work.
const useObserved = "observed"

// PoolReader reads a pool, by id.
type PoolReader interface {
	Pool(ctx context.Context, idOrName string) (contract.Pool, error)
}

// readRoom is what is free on the nodes of the pool that are up; nothing where that is not
// known, and in a pool whose GPUs are handed out one by one. That it cannot be read is no
// reason to promise nothing.
func (a *Agent) readRoom(ctx context.Context) contract.PoolRoom {
	if a.cfg.Pools == nil || a.cfg.Mode != Auto || a.handedOut {
		return contract.PoolRoom{}
	}
	pool, err := a.cfg.Pools.Pool(ctx, a.cfg.PoolID)
	if err != nil {
		a.cfg.Logger.Warn("what is free in the pool is not known; the plan counts on nothing", "error", err)
		return contract.PoolRoom{}
	}
	a.handedOut = pool.Use != useObserved
	if pool.Room == nil {
		return contract.PoolRoom{}
	}
	return *pool.Room
}

// choosePlaces decides what to keep warm from now on, beside what is free.
func (a *Agent) choosePlaces(rep *Report, room contract.PoolRoom) []place.Choice {
	rep.Choices = place.UseRoom(place.Choose(rep.Prediction, a.cfg.Place), room, rep.Prediction.JobGPUs)
	return place.Raise(rep.Choices, rep.Prediction.Holds, a.cfg.Place.MaxGPUs)
}
