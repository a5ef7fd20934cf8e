package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/node"
)

// Machine is what a provider said of a machine, in plain values.
type Machine struct {
	ProviderID string
	Address    string
	Devices    []gpu.Device
	Simulated  bool
}

// CreateIntent is a committed decision to make a machine: Node.Token is stored,
// so the call that follows may be repeated for ever.
type CreateIntent struct {
	Node   node.Node
	Pool   Pool
	Wanted bool // false: there is nothing to do, and the task is finished
}

// giveUpAfter is how many tries of a removal pass before a person is asked to
// look. The tries go on.
const giveUpAfter = 10

// onNode locks a node's pool and runs fn; the pool is planned afterwards.
func (l *Ledger) onNode(ctx context.Context, id string, fn func(u *unit, p *poolUnit, n node.Node) error) error {
	return l.do(ctx, SystemActor("worker"), func(u *unit) error {
		seen, err := u.tx.Node(id)
		if err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		p, err := u.lockPool(seen.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		n, ok := p.node(id)
		if !ok { // it is over
			if n, err = u.tx.Node(id); err != nil {
				return fmt.Errorf("reading node: %w", err)
			}
		}
		return fn(u, p, n)
	})
}

// BeginCreate commits the intent to make a node's machine, with its token,
// before anything is asked of a provider. Repeated, it returns the same token.
func (l *Ledger) BeginCreate(ctx context.Context, g Guard, nodeID string) (CreateIntent, error) {
	var intent CreateIntent
	err := l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		intent = CreateIntent{Node: n, Pool: p.Pool, Wanted: true}
		switch n.State() {
		case node.Requested:
			n.Token = token(p.Pool.Pool, n)
			var err error
			intent.Node, err = u.stepNode(p, n, node.Provision, n.Reason, "")
			return err
		case node.Provisioning:
			return nil
		default:
			intent.Wanted = false
			return u.tx.Finish(g, time.Time{}, "")
		}
	})
	return intent, err
}

// token names one machine for ever: the node, its generation and everything
// that the provider is asked for.
func token(p gpu.Pool, n node.Node) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s/%s/%s", n.ID, n.Generation, p.Provisioner, p.Region, p.Type))
	return hex.EncodeToString(sum[:16])
}

// ReportCreated stores the machine's id as soon as it is known.
func (l *Ledger) ReportCreated(ctx context.Context, g Guard, nodeID string, m Machine) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if n.State() == node.Provisioning {
			n.ProviderID, n.Address, n.Simulated = m.ProviderID, m.Address, m.Simulated
			n, err := u.stepNode(p, n, node.Boot, n.Reason, fmt.Sprintf("%s is booting", m.ProviderID))
			if err != nil {
				return err
			}
			u.task(TaskCheckNode, n.ID, u.now().Add(l.cfg.CheckEvery))
		}
		u.wakePlan(p.Pool.ID)
		return u.tx.Finish(g, time.Time{}, "")
	})
}

// ReportRefused ends a node that the provider will not make. The pool asks for
// nothing until some time later, twice as long after each refusal in a row.
func (l *Ledger) ReportRefused(ctx context.Context, g Guard, nodeID, kind, message string, stockOut bool) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if n.State() == node.Provisioning {
			if _, err := u.stepNode(p, n, node.Refuse, kind, clip(message, 200)); err != nil {
				return err
			}
			wait := l.cfg.StockOut
			if !stockOut { // a quota, rights or the request itself: time alone does not mend it
				wait *= 10
			}
			u.failed(p, n, wait)
		}
		u.wakePlan(p.Pool.ID)
		return u.tx.Finish(g, time.Time{}, "")
	})
}

// BeginCheck reads what there is to check of a node; wanted is false when there
// is nothing, and the task is finished.
func (l *Ledger) BeginCheck(ctx context.Context, g Guard, nodeID string) (n node.Node, p Pool, wanted bool, err error) {
	return l.begin(ctx, g, nodeID, node.Booting, node.Ready, node.Draining, node.Quarantined)
}

// BeginDelete reads what there is to remove of a node; wanted is false when
// there is nothing, and the task is finished.
func (l *Ledger) BeginDelete(ctx context.Context, g Guard, nodeID string) (n node.Node, p Pool, wanted bool, err error) {
	return l.begin(ctx, g, nodeID, node.Deprovisioning, node.NeedsAttention)
}

func (l *Ledger) begin(ctx context.Context, g Guard, nodeID string, in ...node.State) (n node.Node, p Pool, wanted bool, err error) {
	err = l.store.InTx(ctx, func(_ context.Context, tx Tx) error {
		if n, err = tx.Node(nodeID); err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		if p, err = tx.Pool(n.PoolID); err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		wanted = false
		for _, s := range in {
			wanted = wanted || n.State() == s
		}
		if wanted {
			return nil
		}
		return tx.Finish(g, time.Time{}, "")
	})
	return n, p, wanted, err
}

// ReportBooting looks again soon.
func (l *Ledger) ReportBooting(ctx context.Context, g Guard, _ string) error {
	return l.again(ctx, g, l.cfg.CheckEvery, "")
}

// ReportUp passes a booting node, whose boot time is learned; a node that was
// up already is looked at again later.
func (l *Ledger) ReportUp(ctx context.Context, g Guard, nodeID string, m Machine) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if n.State() == node.Booting {
			took := u.now().Sub(n.RequestedAt)
			n.Address, n.Devices = m.Address, m.Devices
			if _, err := u.stepNode(p, n, node.BecomeOK, n.Reason,
				fmt.Sprintf("%d GPUs proved usable after %s", len(m.Devices), took.Round(time.Second))); err != nil {
				return err
			}
			learned := p.Pool
			learned.Boot, learned.Supply = learned.Boot.Learn(took), learned.Supply.Ready(u.now())
			p.putPool(learned)
			u.wakePlan(p.Pool.ID)
		}
		return u.tx.Finish(g, u.now().Add(l.cfg.VerifyEvery), "")
	})
}

// ReportUnhealthy takes a node out of use, and goes on looking at it. A booting
// one is given up, and counts against the pool like a refusal.
func (l *Ledger) ReportUnhealthy(ctx context.Context, g Guard, nodeID, reason string) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		u.wakePlan(p.Pool.ID)
		switch n.State() {
		case node.Ready:
			if _, err := u.stepNode(p, n, node.Quarantine, reason, ""); err != nil {
				return err
			}
			return u.tx.Finish(g, u.now().Add(l.cfg.VerifyEvery), "")
		case node.Booting:
			n, err := u.stepNode(p, n, node.Retire, reason, "")
			if err != nil {
				return err
			}
			u.task(TaskDeleteNode, n.ID, u.now())
			u.failed(p, n, l.cfg.StockOut)
		}
		return u.tx.Finish(g, time.Time{}, "")
	})
}

// ReportOrphan journals the end of a machine that no node stands for.
func (l *Ledger) ReportOrphan(ctx context.Context, provisioner, machine, nodeID string) error {
	return l.do(ctx, SystemActor("reconcile"), func(u *unit) error {
		u.event(Event{Type: "sweep.orphan_terminated", Subject: machine, Reason: "no_node",
			Message: fmt.Sprintf("%s of %s, tagged for %s, belongs to no live node", clip(machine, 80), provisioner, clip(nodeID, 40))})
		return nil
	})
}

// ReportMissing notes that the provider does not know a node's machine any
// more. It is removed like any other: only the provider's word, twice, ends it.
func (l *Ledger) ReportMissing(ctx context.Context, g Guard, nodeID string) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if _, err := node.Machine.Next(n.State(), node.Lose); err == nil {
			if _, err := u.stepNode(p, n, node.Lose, "missing", "its provider does not know it"); err != nil {
				return err
			}
		}
		u.wakePlan(p.Pool.ID)
		return u.tx.Finish(g, time.Time{}, "")
	})
}

// ReportAdopted stores a machine's id that was learned late.
func (l *Ledger) ReportAdopted(ctx context.Context, nodeID string, m Machine) error {
	return l.onNode(ctx, nodeID, func(_ *unit, p *poolUnit, n node.Node) error {
		if n.ProviderID == "" && !node.Machine.Terminal(n.State()) {
			n.ProviderID, n.Address = m.ProviderID, m.Address
			p.putNode(n)
		}
		return nil
	})
}

// ReportAbsent notes that the provider says that a machine is gone. Said twice,
// far enough apart, it is believed.
func (l *Ledger) ReportAbsent(ctx context.Context, g Guard, nodeID string) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if node.Machine.Terminal(n.State()) {
			return u.tx.Finish(g, time.Time{}, "")
		}
		if n.AbsentAt.IsZero() {
			n.AbsentAt = u.now()
			p.putNode(n)
			return u.tx.Finish(g, u.now().Add(l.cfg.ConfirmGone), "")
		}
		if due := n.AbsentAt.Add(l.cfg.ConfirmGone); u.now().Before(due) {
			return u.tx.Finish(g, due, "")
		}
		if _, err := u.stepNode(p, n, node.Confirm, n.Reason, "its provider said so twice"); err != nil {
			return err
		}
		u.wakePlan(p.Pool.ID)
		return u.tx.Finish(g, time.Time{}, "")
	})
}

// ReportStillThere tries a removal again later, less and less often, for ever;
// after many tries a person is asked to look.
func (l *Ledger) ReportStillThere(ctx context.Context, g Guard, nodeID, failure string) error {
	return l.onNode(ctx, nodeID, func(u *unit, p *poolUnit, n node.Node) error {
		if !n.AbsentAt.IsZero() {
			n.AbsentAt = time.Time{}
			p.putNode(n)
		}
		t, err := u.tx.Task(g.TaskID)
		if err != nil {
			return fmt.Errorf("reading task: %w", err)
		}
		if t.Attempt >= giveUpAfter && n.State() == node.Deprovisioning {
			if _, err := u.stepNode(p, n, node.GiveUp, "not_removed", clip(failure, 200)); err != nil {
				return err
			}
		}
		return u.tx.Finish(g, u.now().Add(l.cfg.RemoveEvery<<min(t.Attempt, 7)), failure)
	})
}

// EmitNodeTask makes sure that a node which needs a kind of task has one on its
// way: work that was lost is asked for again. A task that exists is left alone.
func (l *Ledger) EmitNodeTask(ctx context.Context, nodeID, kind string) error {
	return l.onNode(ctx, nodeID, func(u *unit, _ *poolUnit, _ node.Node) error {
		pending, err := u.tx.Pending(kind, nodeID)
		if err != nil {
			return fmt.Errorf("looking for a pending task: %w", err)
		}
		if !pending {
			u.task(kind, nodeID, u.now())
		}
		return nil
	})
}

// again has a guarded task run once more after a while.
func (l *Ledger) again(ctx context.Context, g Guard, after time.Duration, failure string) error {
	return l.store.InTx(ctx, func(_ context.Context, tx Tx) error {
		return tx.Finish(g, tx.Now().Add(after), failure)
	})
}
