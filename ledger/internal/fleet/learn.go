package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// learnBoot learns how long a boot took: from when the provider was asked until it
// was seen to be over. What we ourselves were late with, because no worker was
// there, says nothing of the provider; nor does a node of an observed pool that was
// up before, and was only taken into keeping.
func learnBoot(tx *txn.Tx, g ledger.Guard, p *txn.PoolTx, n node.Node) error {
	asked, err := askedAt(tx, n)
	if err != nil {
		return err
	}
	took := tx.Now().Sub(asked)
	seen, err := seenInTime(tx, g, took)
	if err != nil {
		return err
	}
	next := p.Pool
	if seen && !wasUp(p, tx.Config.CheckEvery, took) {
		next.Learned = next.Learned.Booted(next.Pool, n.Offering, took, tx.Now())
	} else {
		next.Learned = next.Learned.Served(next.Pool, n.Offering, tx.Now())
	}
	p.PutPool(next)
	return nil
}

// firstLooks is how many looks a node takes to be found up that did not have to boot.
const firstLooks = 3

// wasUp reports whether a node was up when it was asked for: in an observed pool that is
// one which the cluster's own work had booted, and which is ready at the first looks.
func wasUp(p *txn.PoolTx, checkEvery, took time.Duration) bool {
	return p.Pool.Observed && took <= firstLooks*checkEvery
}

// askedAt is when a worker began to ask the provider for a node, as the journal has
// it, else when it was wanted.
func askedAt(tx *txn.Tx, n node.Node) (time.Time, error) {
	events, err := tx.Port.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: n.ID,
		Type: "node." + string(node.Provisioning)},
		1)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading when the provider was asked: %w", err)
	}
	if len(events) == 0 {
		return n.RequestedAt, nil
	}
	return events[0].At, nil
}

// lateLook is the part of a boot by which the look that found it over may be late.
const lateLook = 4

// seenInTime reports whether the look that found a boot over came when it was due,
// or so little later that it matters not; and that the looks before it succeeded.
func seenInTime(tx *txn.Tx, g ledger.Guard, took time.Duration) (bool, error) {
	task, err := tx.Port.Task(g.TaskID)
	if errors.Is(err, ledger.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading when a look was due: %w", err)
	}
	late := tx.Now().Sub(task.RunAt)
	return task.Failures == 0 && late <= max(tx.Config.CheckEvery, took/lateLook), nil
}

// learnArrivals lets the pool learn when people come without having reserved. Only a
// start, or an hour that is over, is worth a write. Who came and went between two
// plans is not seen: every start has the pool planned.
func learnArrivals(tx *txn.Tx, p *txn.PoolTx) {
	seen := p.Pool.Arrivals.Until
	var starts []learned.Start
	for a := range p.Allocations.All() {
		if len(a.Reservations) == 0 && a.EnteredAt().After(seen) {
			starts = append(starts, learned.Start{At: a.EnteredAt(),
				Nodes: float64(a.Shape.GPUs()) / float64(max(1, p.Pool.PerNode))})
		}
	}
	if len(starts) == 0 && tx.Now().Truncate(time.Hour).Equal(seen.Truncate(time.Hour)) {
		return
	}
	next := p.Pool
	next.Arrivals = next.Arrivals.Observe(starts, tx.Now())
	p.PutPool(next)
}
