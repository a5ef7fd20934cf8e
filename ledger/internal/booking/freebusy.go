package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// FreeBusy reads what is free of a pool, by id or name, from one time to
// another: the exact minimum of each step, or with a step of 0 a step at each
// change. It says nothing of whose the rest is.
func (l Booking) FreeBusy(ctx context.Context, idOrName string, from, to time.Time,
	step time.Duration) (ledger.FreeBusy, error) {
	var out ledger.FreeBusy
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		pool, err := ledger.LivePool(r, idOrName)
		if err != nil {
			return err
		}
		state, err := r.LiveState(pool.ID)
		if err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		out = ledger.FreeBusy{Pool: state.Pool}
		booked, used := state.Booked()
		for _, level := range booked.FreeBusy(from, to, step) {
			out.Steps = append(out.Steps, ledger.FreeStep{Level: level, Workloads: splitLevels(pool.Pool, used, level)})
		}
		return nil
	})
	return out, err
}

// splitLevels says what each workload of a split pool has and may still have.
func splitLevels(p capacity.Pool, used map[capacity.Workload]*calendar.Profile,
	level calendar.Level) []ledger.WorkloadLevel {
	if p.OnlineShare == 0 {
		return nil
	}
	online, batch := admission.Shares(p)
	levels := []ledger.WorkloadLevel{{Workload: capacity.Online, Share: online},
		{Workload: capacity.Batch, Share: batch}}
	for i := range levels {
		l := &levels[i]
		l.Used = used[l.Workload].Peak(calendar.Interval{Start: level.Start, End: level.End})
		if l.Free = level.FreeGPUs; !p.BorrowIdle {
			l.Free = max(0, min(l.Share-l.Used, level.FreeGPUs))
		}
	}
	return levels
}

// Advise finds up to limit windows for a flexible request, the earliest first,
// each of which Reserve would accept now. Without any, the error is the
// *RefusedError of the cheapest pool, which names the others.
func (l Booking) Advise(ctx context.Context, actor ledger.Actor, req ledger.ReserveRequest, limit int) (
	[]ledger.Recommendation, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	var found []ledger.Recommendation
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		h, err := readHolding(tx)
		if err != nil {
			return err
		}
		pools, err := lockCandidates(tx, req.PoolNeeds())
		if err != nil {
			return err
		}
		found, err = adviseWindows(tx, pools, h, req, limit)
		return err
	})
	return found, err
}

func adviseWindows(tx *txn.Tx, pools []*txn.PoolTx, h *holding, req ledger.ReserveRequest, limit int) (
	[]ledger.Recommendation, error) {
	var found []ledger.Recommendation
	for _, p := range pools {
		some, err := acceptableWindows(tx, p, h, req, limit)
		if req.Passed.PassOver(p.Pool.Name, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	if len(found) == 0 {
		return nil, txn.OnlyAsked(req.Passed.RefusalOfAll())
	}
	slices.SortStableFunc(found, func(a, b ledger.Recommendation) int { return a.Window.Start.Compare(b.Window.Start) })
	return found[:min(limit, len(found))], nil
}

const (
	// triedWindows bounds how many windows are decided on for one request.
	triedWindows = 64
	// nudge is how far on the next window is looked for after one that no later
	// change is known to help.
	nudge = 15 * time.Minute
)

// acceptableWindows lists up to limit windows of a flexible request that a pool and the
// limits accept; none is *RefusedError.
func acceptableWindows(tx *txn.Tx, p *txn.PoolTx, h *holding, req ledger.ReserveRequest, limit int) (
	[]ledger.Recommendation, error) {
	shape, _ := p.Pool.ShapeOf(req.Layout, req.GPUs)
	left := req.Range
	left.StartNotEarlierThan = calendar.Later(left.StartNotEarlierThan, tx.Now())
	var found []ledger.Recommendation
	var last txn.Verdict
	for range triedWindows {
		iv, _, ok := p.Places.FindRange(shape, left, nil)
		if !ok || len(found) == limit {
			break
		}
		iv, d, err := shrinkToFit(tx, p, h, req, iv)
		if err != nil {
			return nil, err
		}
		if last = d; d.Accepted() {
			found = append(found, ledger.Recommendation{PoolID: p.Pool.ID, Shape: shape, Window: iv, Cost: d.Cost})
			left.StartNotEarlierThan = iv.End
			continue
		}
		left.StartNotEarlierThan = h.changeAfter(iv.Start)
	}
	if len(found) > 0 {
		return found, nil
	}
	if last.Accepted() { // the calendar had no window at all: say what stands in the way of the first
		first := calendar.Interval{Start: left.StartNotEarlierThan,
			End: left.StartNotEarlierThan.Add(max(left.MinDuration, time.Second))}
		var err error
		if _, last, err = judgeWindow(tx, p, h, req, first); err != nil {
			return nil, err
		}
	}
	return nil, txn.RefuseRequest(tx, p, h.org.ID, "reservation", last)
}

// shrinkToFit decides on a window, and on the shortest one that starts with it if the
// whole of it is refused: limits may bind where the calendar does not.
func shrinkToFit(tx *txn.Tx, p *txn.PoolTx, h *holding, req ledger.ReserveRequest,
	iv calendar.Interval) (calendar.Interval, txn.Verdict, error) {
	_, d, err := judgeWindow(tx, p, h, req, iv)
	short := calendar.Interval{Start: iv.Start, End: calendar.Later(iv.Start.Add(req.Range.MinDuration),
		req.Range.EndNotEarlierThan)}
	if err != nil || d.Accepted() || !short.Valid() || !short.End.Before(iv.End) {
		return iv, d, err
	}
	_, shorter, err := judgeWindow(tx, p, h, req, short)
	if shorter.Accepted() {
		return short, shorter, err
	}
	return iv, d, err
}

// changeAfter is the first instant after t at which what the organization holds
// changes; without one, a little later.
func (h *holding) changeAfter(t time.Time) time.Time {
	if next, ok := h.commitments.All.Next(t); ok && next.Before(t.Add(24*time.Hour)) {
		return next
	}
	return t.Add(nudge)
}

// judgeWindow decides on one window of a request as Reserve would.
func judgeWindow(tx *txn.Tx, p *txn.PoolTx, h *holding, req ledger.ReserveRequest,
	w calendar.Interval) (reservation.Reservation, txn.Verdict, error) {
	shape, _ := p.Pool.ShapeOf(req.Layout, req.GPUs)
	req.Window = w
	if req.ID == "" {
		req.ID = ids.Reservation // it is only looked at
	}
	return decideReservation(tx, p, h, newReservation(tx, p, h.org, req, shape))
}
