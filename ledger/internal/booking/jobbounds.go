package booking

import (
	"cmp"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Bounds are what those may have at most who submitted a job or change it.
type Bounds struct {
	holdings []*holding
	known    map[bounded]error
}

// bounded is what decides whether a job is within bounds.
type bounded struct {
	pool     string
	shape    capacity.Shape
	lease    time.Duration
	workload capacity.Workload
}

// ReadBounds reads what askers of an organization may have, which it locks: before the pool of any job is locked, as
// who submits a job does.
func ReadBounds(tx *txn.Tx, organizationID string, askers []ledger.Asker) (*Bounds, error) {
	b := &Bounds{known: map[bounded]error{}}
	for _, who := range askers {
		h, err := readHoldingOf(tx, organizationID, who)
		if err != nil {
			return nil, err
		}
		b.holdings = append(b.holdings, h)
	}
	return b, nil
}

// Check refuses a job that its pool could never give to one of the askers, as ChoosePool does.
func (b *Bounds) Check(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
	is := bounded{p.Pool.ID, j.Shape, LeaseOfJob(j), cmp.Or(j.Workload, capacity.Batch)}
	err, found := b.known[is]
	if !found {
		for _, h := range b.holdings {
			if err = everServed(tx, p, h, takeRequest{shape: is.shape, lease: is.lease, workload: is.workload}); err != nil {
				break
			}
		}
		b.known[is] = err
	}
	return err
}
