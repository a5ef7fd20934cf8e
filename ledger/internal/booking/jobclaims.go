package booking

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// PartClaim is what a job claims by itself: of what is left of a reservation as many GPUs as it needs, on some slots.
// The zero PartClaim: nothing.
type PartClaim struct {
	Reservation string // the whole, which may have been divided
	Slots       []int
}

// ErrNotClaimable says that a job cannot claim what it was to claim by itself.
var ErrNotClaimable = errors.New("the reservation cannot be claimed by the job any more")

// Serves reports whether a job claims a reservation by itself, once that can be claimed.
func Serves(r reservation.Reservation, j job.Job) bool {
	return r.Claimants().Serves(reservation.Submitter{OrganizationID: j.OrganizationID, UserID: j.UserID,
		KeyID: j.SubmittedBy})
}

// IsClaimable reports whether jobs claim a promise by themselves at an instant: its time has come, and nodes are made
// ready for it. Speculative ones are claimed by whoever gets GPUs in the order of the queue.
func IsClaimable(r reservation.Reservation, at time.Time) bool {
	return r.Class == reservation.Guaranteed && r.Window.Contains(at) &&
		(r.State() == reservation.Ready || r.State() == reservation.Warming)
}

// partTake is what a job asks for that claims a part of a reservation, or fails with ErrNotClaimable. What another job
// names is that one's.
func partTake(tx *txn.Tx, p *txn.PoolTx, req takeRequest, j job.Job, claims PartClaim) (takeRequest, error) {
	req.part, req.explicit, req.own = claims.Slots, true, nil
	for r := range p.Reservations.All() {
		if r.Whole() != claims.Reservation || !Serves(r, j) || !IsClaimable(r, tx.Now()) {
			continue
		}
		switch _, named, err := txn.JobNaming(tx, p.Pool.ID, r.ID); {
		case err != nil:
			return req, err
		case !named:
			req.own = append(req.own, r)
		}
	}
	if len(claims.Slots) != j.Shape.Nodes || len(req.own) == 0 {
		return req, ErrNotClaimable
	}
	if _, ok := takesOf(req.own, j.Shape, claims.Slots); !ok {
		return req, ErrNotClaimable
	}
	req.workload = req.own[0].Workload
	return req, nil
}

// takesOf is what a shape on some slots takes of each of a reservation's rows, in their order; false where they have
// not so many GPUs there.
func takesOf(rows []reservation.Reservation, shape capacity.Shape, slots []int) (takes []map[int]int, ok bool) {
	needs, needed := map[int]int{}, shape.GPUs()
	for i, slot := range slots {
		needs[slot] = shape.On(i)
	}
	for _, r := range rows {
		take := map[int]int{}
		for i, slot := range r.Slots {
			if n := min(needs[slot], r.Shape.On(i)); n > 0 {
				take[slot] = n
				needs[slot] -= n
				needed -= n
			}
		}
		takes = append(takes, take)
	}
	return takes, needed == 0
}

// restOfPart is what would be left of the reservation of which the request takes a part: GPUs beside it, and the time
// after it, with all that a boot may take.
func restOfPart(tx *txn.Tx, p *txn.PoolTx, req takeRequest) (all []reservation.Reservation) {
	if req.part == nil {
		return nil
	}
	n := 0
	newID := func() string { n++; return fmt.Sprint(req.own[0].ID, "-", n) }
	takes, _ := takesOf(req.own, req.shape, req.part)
	for i, r := range req.own {
		rest, _, taken := r.Carve(takes[i], newID)
		if !taken {
			rest = []reservation.Reservation{r}
		}
		all = append(all, rest...)
	}
	used := reservation.Used{Shape: req.shape, Slots: req.part}
	later, any := req.own[0].After(used, restFrom(tx, p, req.lease), newID(), tx.Now())
	if any {
		all = append(all, later)
	}
	return all
}

// restFrom is from when a reservation has room after a lease that begins now or after a boot.
func restFrom(tx *txn.Tx, p *txn.PoolTx, lease time.Duration) time.Time {
	return tx.Now().Add(lease + longestBoot(tx, p) + p.Places.Margin())
}

// claimPart takes over what an allocation uses of a reservation. The rest of it stays as it is, for others: GPUs that
// it does not use, and the time after it.
func claimPart(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, req takeRequest) (claimed []string, err error) {
	takes, ok := takesOf(req.own, a.Shape, a.Slots)
	if !ok {
		return nil, ErrNotClaimable
	}
	whole := req.own[0]
	for i, r := range req.own {
		rest, parts, taken := r.Carve(takes[i], func() string { return tx.IDs.New(ids.Reservation) })
		if !taken {
			continue
		}
		for _, left := range rest {
			p.PutReservation(left)
		}
		for _, part := range parts {
			message := "claimed by job " + a.JobID
			if part.Shape != whole.Shape {
				message += fmt.Sprintf(", %s of %s", phrase.Count(part.Shape.GPUs(), "GPU"), part.PartOf)
			}
			part.JobID = a.JobID
			if part, err = tx.StepReservation(p, part, reservation.Claim, "claimed", message); err != nil {
				return nil, err
			}
			claimed = append(claimed, part.ID)
		}
	}
	reserveAfter(tx, p, whole, a, a.Window.End.Add(p.Places.Margin()), restFrom(tx, p, req.lease))
	return claimed, nil
}

// ClaimableLater reports whether a job that begins at an instant claims one of the pool's reservations then, as they
// are now: nodes are ready for it.
func ClaimableLater(all []reservation.Reservation, j job.Job, at time.Time) bool {
	left := map[string]map[int]int{} // GPUs on each slot, by reservation
	for _, r := range all {
		if r.Class != reservation.Guaranteed || !r.Placed() || !Serves(r, j) || !r.Window.Contains(at) {
			continue
		}
		if left[r.Whole()] == nil {
			left[r.Whole()] = map[int]int{}
		}
		for i, slot := range r.Slots {
			left[r.Whole()][slot] += r.Shape.On(i)
		}
	}
	for _, on := range left {
		if holdsShape(slices.Collect(maps.Values(on)), j.Shape) {
			return true
		}
	}
	return false
}

// holdsShape reports whether nodes with so many GPUs have those of a shape.
func holdsShape(nodes []int, shape capacity.Shape) bool {
	slices.SortFunc(nodes, func(a, b int) int { return b - a })
	if len(nodes) < shape.Nodes {
		return false
	}
	for i := range shape.Nodes {
		if nodes[i] < shape.On(i) {
			return false
		}
	}
	return true
}

func slotSetOf(p *txn.PoolTx, slots []int) calendar.SlotSet {
	set := calendar.NewSlotSet(p.Pool.MaxNodes)
	for _, slot := range slots {
		if slot < p.Pool.MaxNodes {
			set.Add(slot)
		}
	}
	return set
}
