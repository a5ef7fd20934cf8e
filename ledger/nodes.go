package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
)

// Instance is what a provider said of a machine, in plain values.
type Instance struct {
	ProviderID string
	Address    string
	Devices    []capacity.Device
	Simulated  bool
	// Born and Ended are the provider's own times, by which it charges; zero
	// where it does not say.
	Born, Ended time.Time
	// Endless says that its provider gives machines no dead-man switch: it never
	// ends by itself.
	Endless bool
	// LookWithin is how soon it should be looked at again; zero: as configured.
	LookWithin time.Duration
}

// Loss is what is known of a machine that is gone without having been removed.
type Loss struct {
	Preempted bool      // its provider took it back for somebody else
	Ended     time.Time // until when the provider charges; zero where it does not say
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
func onNode(ctx context.Context, l *engine, id string, fn func(tx *groupTx, p *poolTx, n node.Node) error) error {
	return l.inOwnTx(ctx, SystemActor("worker"), func(tx *groupTx) error {
		seen, err := tx.port.Node(id)
		if err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		p, err := tx.lockPool(seen.PoolID)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		n, ok := p.findNode(id)
		if !ok { // it is over
			if n, err = tx.port.Node(id); err != nil {
				return fmt.Errorf("reading node: %w", err)
			}
		}
		return fn(tx, p, n)
	})
}

// BeginCreate commits the intent to make a node's machine, with its token,
// before anything is asked of a provider. Repeated, it returns the same token.
func (l Fleet) BeginCreate(ctx context.Context, g Guard, nodeID string) (CreateIntent, error) {
	var intent CreateIntent
	err := onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		intent = CreateIntent{Node: n, Pool: p.Pool, Wanted: true}
		switch n.State() {
		case node.Requested, node.Provisioning:
			if p.Pool.Recovery.Active() {
				return fmt.Errorf("%s: %w", p.Pool.Name, ErrRecovering)
			}
			if n.State() == node.Provisioning {
				return nil
			}
			n.Offering, _ = chooseOffering(p, n, tx.now())
			n.Token = createToken(n)
			if l.cfg.DeadMan > 0 {
				n.ExpiresAt = n.RequestedAt.Add(l.cfg.DeadMan)
			}
			var err error
			intent.Node, err = tx.stepNode(p, n, node.Provision, n.Reason, describeOffering(p, n.Offering))
			return err
		default:
			intent.Wanted = false
			return tx.port.Finish(g, time.Time{}, "")
		}
	})
	return intent, err
}

// createToken names one machine for ever: the node, its generation and everything
// that the provider is asked for.
func createToken(n node.Node) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", n.ID, n.Generation, n.Offering.Key()))
	return hex.EncodeToString(sum[:16])
}

// ReportCreated stores the machine's id as soon as it is known.
func (l Fleet) ReportCreated(ctx context.Context, g Guard, nodeID string, m Instance) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if n.State() == node.Provisioning {
			n = withInstance(n, m, tx.now())
			n.Simulated = m.Simulated
			n, err := tx.stepNode(p, n, node.Boot, n.Reason, fmt.Sprintf("%s is booting", m.ProviderID))
			if err != nil {
				return err
			}
			tx.addTask(TaskCheckNode, n.ID, tx.now().Add(l.cfg.CheckEvery))
		}
		tx.wakePlan(p.Pool.ID)
		return tx.port.Finish(g, time.Time{}, "")
	})
}

// ReportRefused ends a node that the provider will not make. The pool asks for
// nothing until some time later, twice as long after each refusal in a row.
func (l Fleet) ReportRefused(ctx context.Context, g Guard, nodeID, kind, message string, stockOut bool) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if n.State() == node.Provisioning {
			if _, err := tx.stepNode(p, n, node.Refuse, kind, clipText(message, 200)); err != nil {
				return err
			}
			wait := l.cfg.StockOut
			if !stockOut { // a quota, rights or the request itself: time alone does not mend it
				wait *= 10
			}
			noteFailedBoot(tx, p, n, wait)
		}
		tx.wakePlan(p.Pool.ID)
		return tx.port.Finish(g, time.Time{}, "")
	})
}

// withInstance returns the node with its machine. A provider that does not say when the
// machine was born is believed to have made it now.
func withInstance(n node.Node, m Instance, now time.Time) node.Node {
	n.ProviderID, n.Address, n.BilledFrom = m.ProviderID, m.Address, m.Born
	if n.BilledFrom.IsZero() {
		n.BilledFrom = now
	}
	if m.Endless {
		n.ExpiresAt = time.Time{}
	}
	return n
}

// BeginCheck reads what there is to check of a node; wanted is false when there
// is nothing, and the task is finished.
func (l Fleet) BeginCheck(ctx context.Context, g Guard, nodeID string) (n node.Node, p Pool, wanted bool, err error) {
	return beginNodeTask(ctx, l.engine, g, nodeID, node.Booting, node.Ready, node.Draining, node.Quarantined)
}

// BeginDelete reads what there is to remove of a node; wanted is false when
// there is nothing, and the task is finished.
func (l Fleet) BeginDelete(ctx context.Context, g Guard,
	nodeID string) (n node.Node, p Pool, wanted bool, err error) {
	n, p, wanted, err = beginNodeTask(ctx, l.engine, g, nodeID, node.Deprovisioning, node.NeedsAttention)
	if err == nil && wanted && p.Recovery.Active() {
		err = fmt.Errorf("%s: %w", p.Name, ErrRecovering)
	}
	return n, p, wanted, err
}

func beginNodeTask(ctx context.Context, l *engine, g Guard, nodeID string,
	in ...node.State) (n node.Node, p Pool, wanted bool, err error) {
	err = l.store.InTx(ctx, func(tx Tx) error {
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
func (l Fleet) ReportBooting(ctx context.Context, g Guard, _ string) error {
	return retryTask(ctx, l.engine, g, l.cfg.CheckEvery, "")
}

// ReportUp passes a booting node, whose boot time is learned; a node that was
// up already is looked at again later.
func (l Fleet) ReportUp(ctx context.Context, g Guard, nodeID string, m Instance) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if n.State() == node.Booting {
			took := tx.now().Sub(n.RequestedAt)
			n.Address, n.Devices = m.Address, m.Devices
			if _, err := tx.stepNode(p, n, node.BecomeReady, n.Reason,
				fmt.Sprintf("%s proved usable after %s", phrase.Count(len(m.Devices), "GPU"),
					phrase.Span(took))); err != nil {
				return err
			}
			if err := learnBoot(tx, g, p, n); err != nil {
				return err
			}
			tx.wakePlan(p.Pool.ID)
		}
		if n.State() == node.Quarantined {
			resuming := n.Quarantine.Resuming
			if err := finishInspection(tx, p, n, m); err != nil || resuming {
				return errors.Join(err, tx.port.Finish(g, time.Time{}, "")) // ResumeNode made one more check
			}
		}
		return tx.port.Finish(g, tx.now().Add(lookWithin(l.engine, m)), "")
	})
}

// lookWithin is how long a node that is up is left alone.
func lookWithin(l *engine, m Instance) time.Duration {
	if m.LookWithin > 0 {
		return min(m.LookWithin, l.cfg.VerifyEvery)
	}
	return l.cfg.VerifyEvery
}

// ReportUnhealthy takes a node out of use, and goes on looking at it. A booting
// one is given up, and counts against the pool like a refusal.
func (l Fleet) ReportUnhealthy(ctx context.Context, g Guard, nodeID, reason string) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		tx.wakePlan(p.Pool.ID)
		switch n.State() {
		case node.Ready:
			if _, err := tx.stepNode(p, n, node.Quarantine, reason, ""); err != nil {
				return err
			}
			return tx.port.Finish(g, tx.now().Add(l.cfg.VerifyEvery), "")
		case node.Booting:
			return giveUpBoot(tx, p, n, g, reason)
		case node.Quarantined:
			if n.Quarantine.Resuming {
				keepQuarantined(tx, p, n, reason)
			}
		}
		return tx.port.Finish(g, time.Time{}, "")
	})
}

// ReportMissing notes that the provider does not know a node's machine any
// more, or says that it is over. It is removed like any other: only the provider's
// word, twice, ends it. Nothing is charged after the end that the provider names.
func (l Fleet) ReportMissing(ctx context.Context, g Guard, nodeID string, loss Loss) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if _, err := node.Machine.Next(n.State(), node.Lose); err == nil {
			reason, message := "missing", "its provider does not know it"
			if loss.Preempted {
				reason, message = "preempted", "its provider took it back for somebody else"
			}
			if !loss.Ended.IsZero() {
				n = billedUntil(n, loss.Ended.Truncate(time.Microsecond))
				message += "; it is not billed after " + loss.Ended.UTC().Format(time.RFC3339)
			}
			if _, err := tx.stepNode(p, n, node.Lose, reason, message); err != nil {
				return err
			}
		}
		tx.wakePlan(p.Pool.ID)
		return tx.port.Finish(g, time.Time{}, "")
	})
}

// ReportAdopted stores a machine's id that was learned late.
func (l Fleet) ReportAdopted(ctx context.Context, nodeID string, m Instance) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if n.ProviderID == "" && !node.Machine.Terminal(n.State()) {
			p.putNode(withInstance(n, m, tx.now()))
		}
		return nil
	})
}

// ReportAbsent notes that the provider says that a machine is gone. Said twice,
// far enough apart, it is believed. ended is until when the provider charges;
// zero where it does not say, and then it is when it was first gone.
func (l Fleet) ReportAbsent(ctx context.Context, g Guard, nodeID string, ended time.Time) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if node.Machine.Terminal(n.State()) {
			return tx.port.Finish(g, time.Time{}, "")
		}
		if n.AbsentAt.IsZero() {
			n.AbsentAt = tx.now()
			p.putNode(billedUntil(n, ended))
			return tx.port.Finish(g, tx.now().Add(l.cfg.ConfirmGone), "")
		}
		if due := n.AbsentAt.Add(l.cfg.ConfirmGone); tx.now().Before(due) {
			return tx.port.Finish(g, due, "")
		}
		if _, err := tx.stepNode(p, billedUntil(n, ended), node.Confirm, n.Reason,
			"its provider said so twice"); err != nil {
			return err
		}
		tx.wakePlan(p.Pool.ID)
		return tx.port.Finish(g, time.Time{}, "")
	})
}

// billedUntil returns the node with the end of its bill. What the provider said
// stays when it later knows nothing any more.
func billedUntil(n node.Node, ended time.Time) node.Node {
	if ended.IsZero() && n.BilledUntil.IsZero() {
		ended = n.AbsentAt
	}
	if !ended.IsZero() && !n.BilledFrom.IsZero() {
		n.BilledUntil = ended
		if ended.Before(n.BilledFrom) {
			n.BilledUntil = n.BilledFrom
		}
	}
	return n
}

// ReportBilled corrects until when the machine of a node that is over was billed,
// where its provider knows better than it did. Of any other node, or another
// machine, it changes nothing.
func (l Fleet) ReportBilled(ctx context.Context, nodeID, machine string, until time.Time) error {
	until = until.Truncate(time.Microsecond)
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, _ *poolTx, n node.Node) error {
		if n.ProviderID != machine || !node.Machine.Terminal(n.State()) || n.BilledUntil.Equal(until) ||
			until.Before(n.BilledFrom) {
			return nil
		}
		n.BilledUntil = until
		tx.change.Nodes = append(tx.change.Nodes, n)
		return nil
	})
}

// ReportStillThere tries a removal again later, less and less often, for ever;
// after many tries a person is asked to look.
func (l Fleet) ReportStillThere(ctx context.Context, g Guard, nodeID, failure string) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, p *poolTx, n node.Node) error {
		if !n.AbsentAt.IsZero() {
			n.AbsentAt, n.BilledUntil = time.Time{}, time.Time{}
			p.putNode(n)
		}
		t, err := tx.port.Task(g.TaskID)
		if err != nil {
			return fmt.Errorf("reading task: %w", err)
		}
		if t.Attempt >= giveUpAfter && n.State() == node.Deprovisioning {
			if _, err := tx.stepNode(p, n, node.GiveUp, "not_removed", clipText(failure, 200)); err != nil {
				return err
			}
		}
		return tx.port.Finish(g, tx.now().Add(l.cfg.RemoveEvery<<min(t.Attempt, 7)), failure)
	})
}

// EmitNodeTask makes sure that a node which needs a kind of task has one on its
// way: work that was lost is asked for again. A task that exists is left alone.
func (l Fleet) EmitNodeTask(ctx context.Context, nodeID, kind string) error {
	return onNode(ctx, l.engine, nodeID, func(tx *groupTx, _ *poolTx, _ node.Node) error {
		pending, err := tx.port.Pending(kind, nodeID)
		if err != nil {
			return fmt.Errorf("looking for a pending task: %w", err)
		}
		if !pending {
			tx.addTask(kind, nodeID, tx.now())
		}
		return nil
	})
}

// retryTask has a guarded task run once more after a while.
func retryTask(ctx context.Context, l *engine, g Guard, after time.Duration, failure string) error {
	return l.store.InTx(ctx, func(tx Tx) error {
		return tx.Finish(g, tx.Now().Add(after), failure)
	})
}
