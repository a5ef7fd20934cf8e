package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// CreatePool adds a kind of capacity. prior is what its provisioner says of its
// boots, until better is known. Only an operator may.
func (l Fleet) CreatePool(ctx context.Context, actor ledger.Actor, def capacity.Pool, prior learned.BootTimes) (
	ledger.Pool, error) {
	p := ledger.Pool{Pool: def, Learned: learned.Learned{Boot: prior}, DefinitionVersion: 1}
	if err := checkPool(def); err != nil {
		return p, err
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		if err := holdAgainstOffers(tx, &p.Pool); err != nil {
			return err
		}
		if err := settleObserved(tx, &p.Pool, capacity.Holders{}); err != nil {
			return err
		}
		p.ID, p.CreatedAt = tx.IDs.New(ids.Pool), tx.Now()
		tx.Change.Pools = append(tx.Change.Pools, p)
		tx.AddKeyedTask(ledger.PlanKey(p.ID), ledger.TaskPlan, p.ID)
		tx.AddEvent(ledger.Event{Type: "pool.created", Subject: p.ID, PoolID: p.ID,
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
func (l Fleet) UpdatePool(ctx context.Context, actor ledger.Actor, idOrName string, version int,
	change func(*capacity.Pool)) (ledger.Pool, error) {
	return updatePool(ctx, l.Engine, actor, idOrName, version, change, false)
}

// ForcePool is UpdatePool that also cuts shares below what is booked, and takes
// promises' places. What is beyond the new share stays, and the journal says how
// much that is; promises without a place are flagged until the pool grows again.
func (l Fleet) ForcePool(ctx context.Context, actor ledger.Actor, idOrName string, version int,
	change func(*capacity.Pool)) (ledger.Pool, error) {
	return updatePool(ctx, l.Engine, actor, idOrName, version, change, true)
}

func updatePool(ctx context.Context, l *txn.Engine, actor ledger.Actor, idOrName string, version int,
	change func(*capacity.Pool),
	force bool) (ledger.Pool, error) {
	var out ledger.Pool
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		p, err := tx.LivePool(idOrName)
		if err != nil {
			return err
		}
		if p.Pool.DefinitionVersion != version {
			return ledger.ErrConflict
		}
		def := p.Pool.Pool
		change(&def)
		if err := checkPoolChange(p, def); err != nil {
			return err
		}
		if !sameMachines(p.Pool.Pool, def) {
			if err := holdAgainstOffers(tx, &def); err != nil {
				return err
			}
		}
		if err := settleObserved(tx, &def, p.Pool.Holders); err != nil {
			return err
		}
		taken := sharesTaken(p, def, tx.Now())
		if taken != nil && !force {
			return taken
		}
		lost, err := losePlaces(tx, p, def)
		if err != nil {
			return err
		}
		if len(lost) > 0 && !force {
			return &ledger.PromisesAtRiskError{Pool: def.Name, Promises: lost}
		}
		if why := unwatches(p.Pool.Pool, def); why != "" {
			if err := txn.EndAllWork(tx, p, tx.Now(), "pool_changed", why); err != nil {
				return err
			}
		}
		out = p.Pool
		out.Pool, out.Learned = def, out.RetryStopped(def)
		p.PutPool(out)
		degradeLost(tx, p, lost)
		out = p.Pool
		tx.WakePlan(def.ID)
		tx.AddEvent(ledger.Event{Type: "pool.updated", Subject: def.ID, PoolID: def.ID,
			Message: def.Name + taken.DescribeOverhang()})
		return nil
	})
	out.Version++
	return out, err
}

// Lead is how long before its start a promise of the pool begins to be warmed.
func (l Fleet) Lead(p ledger.Pool, now time.Time) time.Duration {
	return plan.Lead(p.AsPlanned(now).Boot, l.Config.Policy)
}

// holdAgainstOffers checks a pool against what workers have reported of provisioners,
// and marks it as simulated where they say that its machines are: nobody has to know
// that, or can leave it out.
func holdAgainstOffers(tx *txn.Tx, p *capacity.Pool) error {
	known, err := recentProvisioners(tx.Port)
	if err != nil {
		return err
	}
	p.Simulated = p.Simulated || offersSimulated(*p, known)
	return checkOffered(*p, known)
}

// sameMachines reports whether two definitions of a pool ask for the same
// machines of the same sources. What a source costs does not matter here.
func sameMachines(a, b capacity.Pool) bool {
	same := func(s, o capacity.Offering) bool { return s.Key() == o.Key() }
	return a.PerNode == b.PerNode && a.Shares() == b.Shares() && a.Model == b.Model && a.MemoryMiB == b.MemoryMiB &&
		slices.EqualFunc(a.Offerings(), b.Offerings(), same)
}

func checkPoolChange(p *txn.PoolTx, def capacity.Pool) error {
	if err := checkPool(def); err != nil {
		return err
	}
	old := p.Pool.Pool
	if len(p.Nodes.Rows) > 0 && (def.PerNode != old.PerNode || def.Shares() != old.Shares() ||
		def.Provisioner != old.Provisioner || def.Type != old.Type || def.Region != old.Region) {
		return &ledger.StateError{Subject: "pool " + old.Name, State: "in use", Asked: "change what its nodes are"}
	}
	held := len(p.Allocations.Rows) - len(txn.LiveWork(p))
	if def.Observed != old.Observed && len(p.Nodes.Rows)+len(p.Reservations.Rows)+held > 0 {
		return &ledger.StateError{Subject: "pool " + old.Name, State: "in use", Asked: "change how it is used"}
	}
	return nil
}

// unwatches says why the work in an observed pool is seen no more when its definition
// changes; empty: it is.
func unwatches(from, to capacity.Pool) string {
	switch {
	case !from.Observed:
		return ""
	case !to.Observed:
		return "is watched no more: the pool is reserved now"
	case from.Provisioner != to.Provisioner || from.Type != to.Type:
		return "is watched no more: the pool is of other nodes now"
	}
	return ""
}

// maxPrice is the most that a node may cost in an hour: more is a typing error.
const maxPrice = 100_000 * money.USD

// maxAlternates is how many places a pool's machines may come from besides the
// first.
const maxAlternates = 16

func checkAlternates(p capacity.Pool) error {
	if len(p.Alternates) > maxAlternates {
		return &ledger.InvalidError{Field: "alternates", Rule: fmt.Sprintf("must be at most %d", maxAlternates)}
	}
	seen := map[string]bool{p.Offering().Key(): true}
	for i, a := range p.Alternates {
		at := fmt.Sprintf("alternates[%d].", i)
		switch {
		case a.Provisioner == "":
			return &ledger.InvalidError{Field: at + "provisioner", Rule: "must name a configured provisioner"}
		case seen[a.Key()]:
			return &ledger.InvalidError{Field: at + "provisioner",
				Rule: "must not name the same provisioner, region and instance type twice"}
		case a.Price < 0 || a.Price > maxPrice:
			return &ledger.InvalidError{Field: at + "price_per_node_hour", Rule: "must be between 0 and 100000 USD"}
		case a.MinBilling < 0 || a.Boot50 < 0 || a.Boot95 < a.Boot50:
			return &ledger.InvalidError{Field: at + "boot_p95_seconds",
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

// checkShares refuses shares that are not all of some GPUs, and such as Forewarm would not hand out.
func checkShares(p capacity.Pool) error {
	switch {
	case p.SharesPerGPU < 0 || p.SharesPerGPU > ledger.MaxShares:
		return &ledger.InvalidError{Field: "shares_per_gpu", Rule: fmt.Sprintf("must be between 0 and %d",
			ledger.MaxShares)}
	case p.PerNode%p.Shares() != 0:
		return &ledger.InvalidError{Field: "gpus_per_node",
			Rule: fmt.Sprintf("must be a multiple of shares_per_gpu (%d): shares are what it counts", p.Shares()),
			Fix:  fmt.Sprintf("write %d for %s", p.PerNode*p.Shares(), phrase.Count(p.PerNode, "GPU"))}
	case p.Observed && p.Shares() > 1:
		return &ledger.InvalidError{Field: "shares_per_gpu", Rule: "must be left out in an observed pool: its cluster " +
			"shares GPUs itself"}
	}
	return nil
}

// checkDriver refuses a driver that is no version.
func checkDriver(p capacity.Pool) error {
	if p.MinDriver == "" || p.MinDriver.Valid() {
		return nil
	}
	return &ledger.InvalidError{Field: "min_driver", Rule: "must be the version of a driver: one to four numbers with " +
		"points between them", Fix: "write it as in 535.104.05, or leave it out"}
}

func checkPool(p capacity.Pool) error {
	if err := tenancy.CheckName("name", p.Name); err != nil {
		return err
	}
	between := func(field string, v, low, high int) error {
		if v < low || v > high {
			return &ledger.InvalidError{Field: field, Rule: fmt.Sprintf("must be between %d and %d%s", low, high,
				unitOf(field))}
		}
		return nil
	}
	timer := func(field string, d, low time.Duration) error {
		if d < low || d > ledger.MaxTimer {
			return &ledger.InvalidError{Field: field, Rule: fmt.Sprintf("must be between %s and %s", inSeconds(low),
				inSeconds(ledger.MaxTimer))}
		}
		return nil
	}
	if p.Provisioner == "" {
		return &ledger.InvalidError{Field: "provisioner", Rule: "must name a configured provisioner"}
	}
	if p.Price < 0 || p.Price > maxPrice {
		return &ledger.InvalidError{Field: "price_per_node_hour", Rule: "must be between 0 and 100000 USD"}
	}
	if err := checkAlternates(p); err != nil {
		return err
	}
	said := ledger.NodeChange{Labels: p.Labels, Taints: p.Taints}
	if err := said.Check(); err != nil {
		return err
	}
	if err := errors.Join(checkShares(p), checkDriver(p)); err != nil {
		return err
	}
	return errors.Join(
		between("gpus_per_node", p.PerNode, 1, ledger.MaxPerNode),
		between("gpu_memory_mib", p.MemoryMiB, 0, 1<<24),
		between("max_nodes", p.MaxNodes, 1, ledger.MaxNodes),
		between("min_nodes", p.MinNodes, 0, p.MaxNodes),
		timer("warm_hold_seconds", p.Timers.WarmHold, 0),
		timer("idle_release_seconds", p.Timers.IdleRelease, 0),
		between("node_cpus", p.NodeCPUs, 0, 1<<16),
		between("node_memory_mib", p.NodeMemoryMiB, 0, 1<<30),
		between("online_share", p.OnlineShare, 0, 1000),
		timer("cleaning_seconds", p.Timers.Cleaning, 0),
		between("max_creates", p.MaxCreates, 0, ledger.MaxNodes),
		timer("create_window_seconds", p.CreateWindow, 0),
		timer("max_lease_seconds", p.Timers.MaxLease, time.Second),
		checkIdlePolicy(p),
	)
}

// DrainNode takes no more work on a node and removes it once it is empty. Why is for people.
func (l Fleet) DrainNode(ctx context.Context, actor ledger.Actor, nodeID, why string) (node.Node, error) {
	return moveNode(ctx, l.Engine, actor, nodeID, "drain it",
		func(tx *txn.Tx, p *txn.PoolTx, n node.Node) (node.Node, error) {
			return tx.StepNode(p, n, node.Drain, "asked", why)
		})
}

// moveNode changes a node for an operator.
func moveNode(ctx context.Context, l *txn.Engine, actor ledger.Actor, id, asked string,
	move func(*txn.Tx, *txn.PoolTx, node.Node) (node.Node, error),
) (node.Node, error) {
	var out node.Node
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		seen, err := tx.Port.Node(id)
		if err != nil {
			return err
		}
		p, err := tx.LockPool(seen.PoolID)
		if err != nil {
			return err
		}
		n, ok := p.FindNode(id)
		if !ok {
			n = seen
		}
		if out, err = move(tx, p, n); err != nil {
			return &ledger.StateError{Subject: n.ID, State: string(n.State()), Asked: asked}
		}
		tx.WakePlan(p.Pool.ID)
		return nil
	})
	out.Version++
	return out, err
}
