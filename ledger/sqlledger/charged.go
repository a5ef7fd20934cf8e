package sqlledger

import (
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/cost"
)

// charged remembers how the cost of nodes was divided whose whole life is over, and of
// which nothing can change any more: a report reads what each of many nodes cost, and
// who held it, only once.
type charged struct {
	mu  sync.Mutex
	all map[chargedKey]chargedInstance
}

// chargedKey is a node as it was when it was divided: its row, and the GPUs that a node
// of its pool has.
type chargedKey struct {
	billedNode
	gpus int
}

// keepCharged bounds what is remembered, at some 300 bytes each. A period of more nodes
// is divided every time.
const keepCharged = 100_000

func (c *charged) find(n billedNode, gpus int) (chargedInstance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.all[chargedKey{n, gpus}]
	return known, ok
}

func (c *charged) keep(n billedNode, gpus int, m chargedInstance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= keepCharged {
		c.all = map[chargedKey]chargedInstance{}
	}
	c.all[chargedKey{n, gpus}] = m
}

// billedNode is the part of a node's row by which a divided one is known again.
type billedNode struct {
	ID      string `gorm:"column:id"`
	Version int    `gorm:"column:version"`
	PoolID  string `gorm:"column:pool_id"`
	From    int64  `gorm:"column:billed_from"`
	Until   int64  `gorm:"column:billed_until"`
}

func (billedNode) TableName() string { return "nodes" }

// isInside reports whether the whole life is over, and in the period.
func (n billedNode) isInside(period calendar.Interval) bool {
	return n.Until > 0 && n.From >= toMicros(period.Start) && n.Until <= toMicros(period.End)
}

// settledBefore is until when it is known for whom nodes stood ready in vain: nobody who
// may still not come has had one since before then.
func (r costReader) settledBefore() (int64, error) {
	settled := toMicros(r.Now())
	pools, err := capacityReader(r).findLivePools("")
	for i := range pools {
		for j := range pools[i].state.Reservations {
			if ready := toMicros(pools[i].state.Reservations[j].ReadyAt); ready > 0 {
				settled = min(settled, ready)
			}
		}
	}
	return settled, err
}

// allEnded reports whether every hold was over when the node was.
func allEnded(holds []cost.Hold, until time.Time) bool {
	for _, h := range holds {
		if h.Held.End.After(until) {
			return false
		}
	}
	return true
}
