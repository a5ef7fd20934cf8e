package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
)

// TakenShare is a workload's share of a pool that is less than it has booked.
type TakenShare struct {
	Workload capacity.Workload
	Share    int // GPUs that it would have
	Booked   int // GPUs that it has booked, at the instant when they are most
}

// ShareTakenError says that a pool was not split as asked, because of what is
// booked already.
type ShareTakenError struct {
	Pool  string
	Taken []TakenShare
	// Closest is the online share next to the one asked for, in thousandths, by
	// which everything booked is within its share; 0: none, but not to split.
	Closest int
}

// Error names the first share.
func (e *ShareTakenError) Error() string { return e.Taken[0].describeShare(e.Pool) }

func (t TakenShare) describeShare(pool string) string {
	return fmt.Sprintf("%s work has booked %s of pool %s, and would have a share of %d", t.Workload,
		phrase.Count(t.Booked, "GPU"), pool, t.Share)
}

// Reasons are the shares as blockers.
func (e *ShareTakenError) Reasons() []admission.Reason {
	var reasons []admission.Reason
	for _, t := range e.Taken {
		reasons = append(reasons, admission.Reason{Code: admission.WorkloadShareExceeded, Unit: "gpus",
			Limit: int64(t.Share), Asked: int64(t.Booked),
			Message: t.describeShare(e.Pool)})
	}
	return reasons
}

// describeOverhang says what is beyond its share; nothing for nil.
func (e *ShareTakenError) describeOverhang() string {
	if e == nil {
		return ""
	}
	var parts []string
	for _, t := range e.Taken {
		parts = append(parts, fmt.Sprintf("%s has %s booked beyond its share of %d", t.Workload,
			phrase.Count(t.Booked-t.Share, "GPU"), t.Share))
	}
	return ": " + strings.Join(parts, ", ")
}

// sharesTaken compares what each workload has booked from now on with the shares
// of a new definition; nil: a new split takes nothing from anybody.
func sharesTaken(p *poolTx, def capacity.Pool, now time.Time) *ShareTakenError {
	old := p.Pool.Pool
	if def.OnlineShare == 0 || def.BorrowIdle || def.OnlineShare == old.OnlineShare &&
		old.BorrowIdle == def.BorrowIdle {
		return nil
	}
	booked := bookedBy(p, now)
	e := &ShareTakenError{Pool: old.Name, Taken: takenShares(def, booked)}
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
func takenShares(def capacity.Pool, booked map[capacity.Workload]int) []TakenShare {
	online, batch := admission.Shares(def)
	var found []TakenShare
	for _, t := range []TakenShare{{capacity.Online, online, booked[capacity.Online]}, {capacity.Batch, batch, booked[capacity.Batch]}} {
		if t.Booked > t.Share {
			found = append(found, t)
		}
	}
	return found
}

// bookedBy is the most GPUs that each workload has booked at any instant from now
// on.
func bookedBy(p *poolTx, now time.Time) map[capacity.Workload]int {
	used := map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	for r := range p.reservations.allRows() {
		if r.Placed() && used[r.Workload] != nil {
			used[r.Workload].Add(r.Window, r.Shape.GPUs())
		}
	}
	for a := range p.allocations.allRows() {
		if a.Live() && used[a.Workload] != nil {
			used[a.Workload].Add(a.Window, a.Shape.GPUs())
		}
	}
	ahead := calendar.Interval{Start: now, End: now.Add(farAhead)}
	return map[capacity.Workload]int{capacity.Online: used[capacity.Online].Peak(ahead), capacity.Batch: used[capacity.Batch].Peak(ahead)}
}
