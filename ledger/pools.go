package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/internal/ids"
)

// Bounds of a pool.
const (
	maxNodes   = 100_000
	maxPerNode = 1024
	maxTimer   = 366 * 24 * time.Hour
)

// CreatePool adds a kind of capacity. prior is what its provisioner says of its
// boots, until better is known. Only an operator may.
func (l Fleet) CreatePool(ctx context.Context, actor Actor, def capacity.Pool, prior plan.BootTimes) (Pool, error) {
	p := Pool{Pool: def, Learned: plan.Learned{Boot: prior}, DefinitionVersion: 1}
	if err := checkPool(def); err != nil {
		return p, err
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		if err := checkPoolOffered(tx, def); err != nil {
			return err
		}
		p.ID, p.CreatedAt = tx.ids.New(ids.Pool), tx.now()
		tx.change.Pools = append(tx.change.Pools, p)
		tx.addKeyedTask(PlanKey(p.ID), TaskPlan, p.ID)
		tx.addEvent(Event{Type: "pool.created", Subject: p.ID, PoolID: p.ID,
			Message: fmt.Sprintf("%s: up to %s of %d %s at %s an hour", p.Name, phrase.Count(p.MaxNodes, "node"),
				p.PerNode, p.Model, p.Price)})
		return nil
	})
	p.Version = 1
	return p, err
}

// UpdatePool changes a pool's definition. What identifies its machines cannot
// change while any exist. A pool that is made smaller has the planner move what is
// promised on the slots that go; if some of it would have no place any more, that
// is *PromisesAtRiskError. A share cannot be cut below what its workload has booked: that is *ShareTakenError.
// Sources that were stopped because of unfit machines are asked again.
// ErrConflict means that version is not the current one of the definition.
func (l Fleet) UpdatePool(ctx context.Context, actor Actor, idOrName string, version int,
	change func(*capacity.Pool)) (Pool, error) {
	return updatePool(ctx, l.engine, actor, idOrName, version, change, false)
}

// ForcePool is UpdatePool that also cuts shares below what is booked, and takes
// promises' places. What is beyond the new share stays, and the journal says how
// much that is; promises without a place are flagged until the pool grows again.
func (l Fleet) ForcePool(ctx context.Context, actor Actor, idOrName string, version int,
	change func(*capacity.Pool)) (Pool, error) {
	return updatePool(ctx, l.engine, actor, idOrName, version, change, true)
}

func updatePool(ctx context.Context, l *engine, actor Actor, idOrName string, version int, change func(*capacity.Pool),
	force bool) (Pool, error) {
	var out Pool
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		p, err := tx.livePool(idOrName)
		if err != nil {
			return err
		}
		if p.Pool.DefinitionVersion != version {
			return ErrConflict
		}
		def := p.Pool.Pool
		change(&def)
		if err := checkPoolChange(p, def); err != nil {
			return err
		}
		if !sameMachines(p.Pool.Pool, def) {
			if err := checkPoolOffered(tx, def); err != nil {
				return err
			}
		}
		taken := sharesTaken(p, def, tx.now())
		if taken != nil && !force {
			return taken
		}
		lost, err := losePlaces(tx, p, def)
		if err != nil {
			return err
		}
		if len(lost) > 0 && !force {
			return &PromisesAtRiskError{Pool: def.Name, Promises: lost}
		}
		out = p.Pool
		out.Pool, out.Learned = def, out.RetryStopped(def)
		p.putPool(out)
		degradeLost(tx, p, lost)
		out = p.Pool
		tx.wakePlan(def.ID)
		tx.addEvent(Event{Type: "pool.updated", Subject: def.ID, PoolID: def.ID, Message: def.Name + taken.describeOverhang()})
		return nil
	})
	out.Version++
	return out, err
}

// Lead is how long before its start a promise of the pool begins to be warmed.
func (l Fleet) Lead(p Pool, now time.Time) time.Duration {
	return plan.Lead(p.asPlanned(now).Boot, l.cfg.Policy)
}

// checkPoolOffered holds a pool against what workers have reported of provisioners.
func checkPoolOffered(tx *groupTx, p capacity.Pool) error {
	known, err := recentProvisioners(tx.port)
	if err != nil {
		return err
	}
	return checkOffered(p, known)
}

// sameMachines reports whether two definitions of a pool ask for the same
// machines of the same sources. What a source costs does not matter here.
func sameMachines(a, b capacity.Pool) bool {
	same := func(s, o capacity.Offering) bool { return s.Key() == o.Key() }
	return a.PerNode == b.PerNode && a.Model == b.Model && a.MemoryMiB == b.MemoryMiB &&
		slices.EqualFunc(a.Offerings(), b.Offerings(), same)
}

func checkPoolChange(p *poolTx, def capacity.Pool) error {
	if err := checkPool(def); err != nil {
		return err
	}
	old := p.Pool.Pool
	if len(p.nodes.rows) > 0 && (def.PerNode != old.PerNode || def.Provisioner != old.Provisioner ||
		def.Type != old.Type || def.Region != old.Region) {
		return &StateError{Subject: "pool " + old.Name, State: "in use", Asked: "change what its nodes are"}
	}
	return nil
}

// maxPrice is the most that a node may cost in an hour: more is a typing error.
const maxPrice = 100_000 * money.USD

// maxAlternates is how many places a pool's machines may come from besides the
// first.
const maxAlternates = 16

func checkAlternates(p capacity.Pool) error {
	if len(p.Alternates) > maxAlternates {
		return &InvalidError{Field: "alternates", Rule: fmt.Sprintf("must be at most %d", maxAlternates)}
	}
	seen := map[string]bool{p.Offering().Key(): true}
	for i, a := range p.Alternates {
		at := fmt.Sprintf("alternates[%d].", i)
		switch {
		case a.Provisioner == "":
			return &InvalidError{Field: at + "provisioner", Rule: "must name a configured provisioner"}
		case seen[a.Key()]:
			return &InvalidError{Field: at + "provisioner",
				Rule: "must not name the same provisioner, region and instance type twice"}
		case a.Price < 0 || a.Price > maxPrice:
			return &InvalidError{Field: at + "price_per_node_hour", Rule: "must be between 0 and 100000 USD"}
		case a.MinBilling < 0 || a.Boot50 < 0 || a.Boot95 < a.Boot50:
			return &InvalidError{Field: at + "boot_p95_seconds",
				Rule: "must not be less than boot_p50_seconds, and no time negative"}
		}
		seen[a.Key()] = true
	}
	return nil
}

// inSeconds writes a bound of a field that counts seconds, and again in days.
func inSeconds(d time.Duration) string {
	text, day := fmt.Sprintf("%d s", d/time.Second), 24*time.Hour
	if d >= day && d%day == 0 {
		text += fmt.Sprintf(" (%d days)", d/day)
	}
	return text
}

// unitOf is what a field counts whose name ends in it.
func unitOf(field string) string {
	if strings.HasSuffix(field, "_mib") {
		return " MiB"
	}
	return ""
}

func checkPool(p capacity.Pool) error {
	if err := checkName("name", p.Name); err != nil {
		return err
	}
	between := func(field string, v, low, high int) error {
		if v < low || v > high {
			return &InvalidError{Field: field, Rule: fmt.Sprintf("must be between %d and %d%s", low, high,
				unitOf(field))}
		}
		return nil
	}
	timer := func(field string, d, low time.Duration) error {
		if d < low || d > maxTimer {
			return &InvalidError{Field: field, Rule: fmt.Sprintf("must be between %s and %s", inSeconds(low),
				inSeconds(maxTimer))}
		}
		return nil
	}
	if p.Provisioner == "" {
		return &InvalidError{Field: "provisioner", Rule: "must name a configured provisioner"}
	}
	if p.Price < 0 || p.Price > maxPrice {
		return &InvalidError{Field: "price_per_node_hour", Rule: "must be between 0 and 100000 USD"}
	}
	if err := checkAlternates(p); err != nil {
		return err
	}
	return errors.Join(
		between("gpus_per_node", p.PerNode, 1, maxPerNode),
		between("gpu_memory_mib", p.MemoryMiB, 0, 1<<24),
		between("max_nodes", p.MaxNodes, 1, maxNodes),
		between("min_nodes", p.MinNodes, 0, p.MaxNodes),
		timer("warm_hold_seconds", p.Timers.WarmHold, 0),
		timer("idle_release_seconds", p.Timers.IdleRelease, 0),
		between("node_cpus", p.NodeCPUs, 0, 1<<16),
		between("node_memory_mib", p.NodeMemoryMiB, 0, 1<<30),
		between("online_share", p.OnlineShare, 0, 1000),
		timer("cleaning_seconds", p.Timers.Cleaning, 0),
		between("max_creates", p.MaxCreates, 0, maxNodes),
		timer("create_window_seconds", p.CreateWindow, 0),
		timer("max_lease_seconds", p.Timers.MaxLease, time.Second),
	)
}

// DrainNode takes no more work on a node and removes it once it is empty.
func (l Fleet) DrainNode(ctx context.Context, actor Actor, nodeID string) (node.Node, error) {
	return moveNode(ctx, l.engine, actor, nodeID, "drain it", func(tx *groupTx, p *poolTx, n node.Node) (node.Node, error) {
		return tx.stepNode(p, n, node.Drain, "asked", "")
	})
}

// moveNode changes a node for an operator.
func moveNode(ctx context.Context, l *engine, actor Actor, id, asked string,
	move func(*groupTx, *poolTx, node.Node) (node.Node, error),
) (node.Node, error) {
	var out node.Node
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		seen, err := tx.port.Node(id)
		if err != nil {
			return err
		}
		p, err := tx.lockPool(seen.PoolID)
		if err != nil {
			return err
		}
		n, ok := p.findNode(id)
		if !ok {
			n = seen
		}
		if out, err = move(tx, p, n); err != nil {
			return &StateError{Subject: n.ID, State: string(n.State()), Asked: asked}
		}
		tx.wakePlan(p.Pool.ID)
		return nil
	})
	out.Version++
	return out, err
}
