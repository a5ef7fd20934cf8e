package admission

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// permille is the whole of a pool, in the unit of its shares.
const permille = 1000

// Shares splits the pool's GPUs between its workloads by largest remainder
// (Hamilton's method), so that none is lost to rounding; the one that two equal
// remainders leave is online's. A pool that is not split gives all to both.
func Shares(p capacity.Pool) (online, batch int) {
	total := p.PerNode * p.MaxNodes
	if p.OnlineShare <= 0 {
		return total, total
	}
	whole := total * min(p.OnlineShare, permille)
	online = whole / permille
	if whole%permille >= permille/2 && whole%permille > 0 {
		online++
	}
	return online, total - online
}

// SplitFacts say how a split pool stands for the request's workload.
type SplitFacts struct {
	Workload capacity.Workload `json:",omitzero"`
	Share    int               `json:",omitzero"` // GPUs of the pool that are the workload's
	Used     int               `json:",omitzero"` // the most it has booked at any instant of the window
	Borrow   bool              `json:",omitzero"` // it may have more, where it is free
	// ClearsAt is the first start at which it would be within the share; zero: it is,
	// or none within the horizon.
	ClearsAt time.Time `json:",omitzero"`
}

// exceedsShare reports whether the request goes beyond the workload's share.
func (s *SplitFacts) exceedsShare(n int) bool { return s.Workload != "" && s.Used+n > s.Share }

func splitFacts(r *Request, p *PoolView, w calendar.Interval) SplitFacts {
	if p.Pool.OnlineShare <= 0 {
		return SplitFacts{}
	}
	online, batch := Shares(p.Pool)
	s := SplitFacts{Workload: capacity.Online, Share: online, Borrow: p.Pool.BorrowIdle}
	if r.Workload == capacity.Batch {
		s.Workload, s.Share = capacity.Batch, batch
	}
	if used := p.Used[s.Workload]; used != nil {
		s.Used = used.Peak(w)
		if n := r.Shape.GPUs(); s.exceedsShare(n) {
			if start, ok := used.FirstFit(s.Share, n, w.Length(), w.Start, w.Start.Add(horizon)); ok {
				s.ClearsAt = start
			}
		}
	}
	return s
}
