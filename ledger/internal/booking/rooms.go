package booking

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// SlotsWithout returns where a job, which is the actor's, would get its GPUs if others left them, for as
// long as it may need them and the time until they have. It returns false if it would get none even
// then. Nothing changes.
func SlotsWithout(tx *txn.Tx, p *txn.PoolTx, j job.Job, leaving []allocation.Allocation, within time.Duration) (
	slots []int, gets bool, err error) {
	if p.Pool.Recovery.Active() {
		return nil, false, ledger.ErrRecovering
	}
	h, err := readHolding(tx)
	if err != nil {
		return nil, false, err
	}
	for _, a := range leaving {
		p.SetAllocation(&a, nil)
		defer p.SetAllocation(nil, &a)
	}
	longest := p.Pool.Timers.MaxLease
	p.Pool.Timers.MaxLease += within
	defer func() { p.Pool.Timers.MaxLease = longest }()
	req := takeForJob(tx, p, h, j)
	req.lease += within
	d, _, err := decideNow(tx, p, h, req)
	return d.Slots, err == nil && d.Accepted(), err
}
