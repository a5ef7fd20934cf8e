package fleet

import (
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// sharesTaken compares what each workload has booked from now on with the shares
// of a new definition; nil: a new split takes nothing from anybody.
func sharesTaken(p *txn.PoolTx, def capacity.Pool, now time.Time) *ledger.ShareTakenError {
	old := p.Pool.Pool
	if def.OnlineShare == 0 || def.BorrowIdle || def.OnlineShare == old.OnlineShare &&
		old.BorrowIdle == def.BorrowIdle {
		return nil
	}
	booked := bookedBy(p, now)
	e := &ledger.ShareTakenError{Pool: old.Name, Taken: takenShares(def, booked)}
	if len(e.Taken) == 0 {
		return nil
	}
	for off := 1; off < 1000 && e.Closest == 0; off++ {
		for _, share := range []int{def.OnlineShare + off, def.OnlineShare - off} {
			try := def
			try.OnlineShare = share
			if share > 0 && share <= 1000 && len(takenShares(try, booked)) == 0 {
				e.Closest = share
				break
			}
		}
	}
	return e
}

// takenShares are the shares of a pool that are less than what is booked.
func takenShares(def capacity.Pool, booked map[capacity.Workload]int) []ledger.TakenShare {
	online, batch := admission.Shares(def)
	var found []ledger.TakenShare
	for _, t := range []ledger.TakenShare{
		{Workload: capacity.Online, Share: online, Booked: booked[capacity.Online]},
		{Workload: capacity.Batch, Share: batch, Booked: booked[capacity.Batch]},
	} {
		if t.Booked > t.Share {
			found = append(found, t)
		}
	}
	return found
}

// bookedBy is the most GPUs that each workload has booked at any instant from now
// on.
func bookedBy(p *txn.PoolTx, now time.Time) map[capacity.Workload]int {
	used := map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	for r := range p.Reservations.All() {
		if r.Placed() && used[r.Workload] != nil {
			used[r.Workload].Add(r.Window, r.Shape.GPUs())
		}
	}
	for a := range p.Allocations.All() {
		if a.Live() && used[a.Workload] != nil {
			used[a.Workload].Add(a.Window, a.Shape.GPUs())
		}
	}
	ahead := calendar.Interval{Start: now, End: now.Add(farAhead)}
	return map[capacity.Workload]int{capacity.Online: used[capacity.Online].Peak(ahead),
		capacity.Batch: used[capacity.Batch].Peak(ahead)}
}
