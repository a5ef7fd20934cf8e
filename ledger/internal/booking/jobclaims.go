package booking

import (
	"errors"
	"fmt"
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

// PartClaim is what a job claims by itself: of a reservation as many GPUs as it needs, on some of its slots. The zero
// PartClaim: nothing.
type PartClaim struct {
	Reservation string
	Slots       []int
}

// ErrNotClaimable says that a job cannot claim what it was to claim by itself.
var ErrNotClaimable = errors.New("the reservation cannot be claimed by the job any more")

func submitterOf(j job.Job) reservation.Submitter {
	return reservation.Submitter{OrganizationID: j.OrganizationID, UserID: j.UserID, KeyID: j.SubmittedBy}
}

// Serves reports whether a job claims a reservation by itself, once that can be claimed.
func Serves(r reservation.Reservation, j job.Job) bool { return r.Serves(submitterOf(j)) }

// IsClaimable reports whether jobs claim a promise by themselves now: its GPUs are ready, or its time has come.
// Speculative ones are claimed by whoever gets GPUs in the order of the queue.
func IsClaimable(r reservation.Reservation, now time.Time) bool {
	return r.Class == reservation.Guaranteed && r.Window.End.After(now) &&
		(r.State() == reservation.Ready || r.State() == reservation.Warming && !r.Window.Start.After(now))
}

// partTake is what a job asks for that claims a part of a reservation, or fails with ErrNotClaimable.
func partTake(tx *txn.Tx, p *txn.PoolTx, req takeRequest, j job.Job, claims PartClaim) (takeRequest, error) {
	r, found := p.FindReservation(claims.Reservation)
	if !found || !Serves(r, j) || !IsClaimable(r, tx.Now()) || len(claims.Slots) != j.Shape.Nodes {
		return req, ErrNotClaimable
	}
	req.own, req.explicit, req.part, req.workload = []reservation.Reservation{r}, true, claims.Slots, r.Workload
	return req, nil
}

// restOfPart is what would be left of the reservation of which the request takes a part.
func (r takeRequest) restOfPart() []reservation.Reservation {
	if r.part == nil {
		return nil
	}
	whole, n := r.own[0], 0
	rest, _, _ := whole.Carve(r.shape, r.part, func() string { n++; return fmt.Sprint(whole.ID, "-", n) })
	return rest
}

// claimPart takes over what an allocation uses of a reservation. The rest of it stays as it is, for others.
func claimPart(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, r reservation.Reservation) ([]string, error) {
	rest, part, ok := r.Carve(a.Shape, a.Slots, func() string { return tx.IDs.New(ids.Reservation) })
	if !ok {
		return nil, ErrNotClaimable
	}
	message := "claimed by job " + a.JobID
	if len(rest) > 0 {
		message += fmt.Sprintf(", %s of %s", phrase.Count(a.Shape.GPUs(), "GPU"), r.ID)
	}
	for _, left := range rest {
		p.PutReservation(left)
	}
	part.JobID = a.JobID
	_, err := tx.StepReservation(p, part, reservation.Claim, "claimed", message)
	return []string{part.ID}, err
}

// ClaimableLater reports whether a job that begins at an instant claims one of the pool's reservations then: nodes are
// ready for it.
func ClaimableLater(all []reservation.Reservation, j job.Job, at time.Time) bool {
	return slices.ContainsFunc(all, func(r reservation.Reservation) bool {
		return r.Class == reservation.Guaranteed && r.Placed() && Serves(r, j) && r.Window.End.After(at) &&
			(r.State() == reservation.Ready || !r.Window.Start.After(at)) && holdsShape(r.Shape, j.Shape)
	})
}

func holdsShape(all, part capacity.Shape) bool {
	return all.GPUs() >= part.GPUs() && all.Nodes >= part.Nodes && all.PerNode >= part.PerNode
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
