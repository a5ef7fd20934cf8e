package booking

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// jobMargin is what a lease has beside the runtime and grace of its job: until the job has begun
// on all nodes, and until its end is known here.
const jobMargin = 2 * time.Minute

// LeaseOfJob is the lease of a job's allocation. Within it the job ends, or is ended.
func LeaseOfJob(j job.Job) time.Duration { return j.MaxRuntime + j.Grace + jobMargin }

// fitted is a job with what it has in a pool: its shape, and its runtime if it names none.
func fitted(p *txn.PoolTx, req ledger.AllocateRequest, j job.Job) job.Job {
	j.PoolID = p.Pool.ID
	j.Shape, _ = p.Pool.ShapeOf(req.Layout, req.GPUs)
	if j.MaxRuntime == 0 {
		usual := p.Tx.Config.Scheduling.Now().Of(p.Pool.Name).DefaultRuntime
		j.MaxRuntime = min(usual, max(longestRuntime(p, j.Grace), time.Second))
	}
	return j
}

// ChoosePool returns a job as it is in the pool in which it is to wait, which is locked: of those
// that could ever serve it the one where it claims what is reserved for it, which is paid for, then the one where it
// would begin first, then the cheapest.
// *ledger.RefusedError: none ever could.
func ChoosePool(tx *txn.Tx, req ledger.AllocateRequest, j job.Job) (*txn.PoolTx, job.Job, error) {
	h, err := readHolding(tx)
	if err != nil {
		return nil, j, err
	}
	pools, err := lockCandidates(tx, req.PoolNeeds().OfAny())
	if err == nil {
		pools, err = reservedOf(pools)
	}
	if err != nil {
		return nil, j, err
	}
	if err := checkRuntime(pools, j); err != nil {
		return nil, j, err
	}
	ask := func(p *txn.PoolTx) takeRequest { return takeForJob(tx, p, h, fitted(p, req, j)) }
	var able []*txn.PoolTx
	var passed ledger.PassedPools
	for _, p := range pools {
		err := everServed(tx, p, h, ask(p))
		if passed.PassOver(p.Pool.Name, err) {
			continue
		}
		if err != nil {
			return nil, j, err
		}
		able = append(able, p)
	}
	if len(able) == 0 {
		return nil, j, passed.RefusalOfAll()
	}
	if err := putReadyFirst(tx, able, h, ask); err != nil {
		return nil, j, err
	}
	putReservedFirst(able, func(p *txn.PoolTx) job.Job { return fitted(p, req, j) })
	if able, err = suitsFirst(able, func(p *txn.PoolTx) job.Job { return fitted(p, req, j) }); err != nil {
		return nil, j, err
	}
	first := fitted(able[0], req, j)
	for _, p := range able {
		if is := fitted(p, req, j); is.Shape == first.Shape && fitsLimits(p, first) {
			first.Where.Pools = append(first.Where.Pools, p.Pool.ID)
		}
	}
	if len(first.Where.Pools) < 2 {
		first.Where.Pools = nil
	}
	return able[0], first, checkCheckpoint(first)
}

// putReservedFirst moves the pools to the front in which the job, as it is there, claims what is reserved for it when
// it begins.
func putReservedFirst(pools []*txn.PoolTx, in func(*txn.PoolTx) job.Job) {
	if len(pools) < 2 {
		return
	}
	claims := map[string]int{}
	for _, p := range pools {
		j := in(p)
		at := p.Tx.Now()
		if j.NotBefore.After(at) {
			at = j.NotBefore
		}
		if ClaimableLater(slices.Collect(p.Reservations.All()), j, at) {
			claims[p.Pool.ID] = 1
		}
	}
	slices.SortStableFunc(pools, func(a, b *txn.PoolTx) int { return claims[b.Pool.ID] - claims[a.Pool.ID] })
}

// CheckPool refuses to have a job that waits do so in another pool, which could never serve it as it is.
func CheckPool(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
	h, err := readHoldingOf(tx, j.OrganizationID, tx.Actor.AskerFor())
	if err != nil {
		return err
	}
	if _, err := reservedOf([]*txn.PoolTx{p}); err != nil {
		return err
	}
	if j.Shape.PerNode > p.Pool.PerNode {
		return &ledger.InvalidError{Field: "pool", Rule: fmt.Sprintf("must have %d GPUs on a node, and those of "+
			"pool %s have %d", j.Shape.PerNode, p.Pool.Name, p.Pool.PerNode), Fix: "cancel it, and submit it for that pool"}
	}
	if err := CheckLimits(p, j); err != nil {
		return err
	}
	return everServed(tx, p, h, takeForJob(tx, p, h, j))
}

// everServed refuses what the pool could not give an organization that has nothing yet.
func everServed(tx *txn.Tx, p *txn.PoolTx, h *holding, req takeRequest) error {
	ask := admission.Request{Class: reservation.Guaranteed, Workload: req.workload, Shape: req.shape, Now: true,
		Window: calendar.Interval{Start: tx.Now(), End: tx.Now().Add(req.lease)}}
	d := txn.JudgeRequest(ask, emptyView(tx, p, h))
	if d.Accepted() {
		return nil
	}
	d.Offers = nil
	return txn.RefuseRequest(tx, p, h.org.ID, "job", d)
}

// ServeJob gives a job, which is the actor's, the GPUs of its attempt, those that it claims if it claims any, or
// refuses as Allocate does; that is not journaled, as it is asked again and again.
func ServeJob(tx *txn.Tx, p *txn.PoolTx, j job.Job, claims PartClaim) (allocation.Allocation, error) {
	h, err := readHolding(tx)
	if err != nil {
		return allocation.Allocation{}, err
	}
	defer p.OpenRoom(j.ID)() // others left that for it
	req := takeForJob(tx, p, h, j)
	switch {
	case j.Reservation != "" && j.Attempt == 1:
		req, err = reservedTake(p, req, j)
	case claims.Reservation != "":
		req, err = partTake(tx, p, req, j, claims)
	}
	if err != nil {
		return allocation.Allocation{}, err
	}
	a, err := takeGPUs(tx, p, h, req)
	return a, txn.OnlyAsked(err)
}

// takeForJob is what a job asks of a pool: first what its organization has warm there.
func takeForJob(tx *txn.Tx, p *txn.PoolTx, h *holding, j job.Job) takeRequest {
	since := j.WaitsSince()
	if j.NotBefore.After(since) {
		since = j.NotBefore
	}
	req := takeRequest{shape: j.Shape, lease: LeaseOfJob(j), name: j.Name, jobID: j.ID, job: &j,
		workload: cmp.Or(j.Workload, capacity.Batch),
		own: slices.DeleteFunc(claimableNow(p, h.org.ID, tx.Now(), tx.Config.Policy),
			func(r reservation.Reservation) bool { return !Serves(r, j) })}
	if j.IsEligible() {
		req.waited = max(tx.Now().Sub(since), 0)
	}
	return req
}

// ReleaseOfJob gives back what an attempt of a job has.
func ReleaseOfJob(tx *txn.Tx, p *txn.PoolTx, allocationID, reason string) error {
	a, ok := p.FindAllocation(allocationID)
	if !ok || !a.Live() {
		return nil
	}
	tx.WakePlan(p.Pool.ID)
	if a.State() == allocation.Pending {
		_, err := cancelAllocation(tx, p, a, reason, "its job waits for GPUs no more")
		return err
	}
	a, err := tx.StepAllocation(p, a, allocation.Release, reason, "")
	if err == nil {
		_, err = EndAllocation(tx, p, a, allocation.Finish, reason, "its job is over")
	}
	return err
}
