package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// giveUpAfter is how many tries of a removal pass before a person is asked to
// look. The tries go on.
const giveUpAfter = 10

// onNode locks a node's pool and runs fn; the pool is planned afterwards.
func onNode(ctx context.Context, l *txn.Engine, id string, fn func(tx *txn.Tx, p *txn.PoolTx,
	n node.Node) error) error {
	return l.InGroup(ctx, workerActor, &ledger.LockHint{Node: id}, func(tx *txn.Tx) error {
		p, n, err := LockPoolOfNode(tx, id)
		if err != nil {
			return err
		}
		return fn(tx, p, n)
	})
}

// workerActor is in whose name workers report.
var workerActor = ledger.SystemActor("worker")

// LockPoolOfNode returns a node, which may be over, and its pool, locked.
func LockPoolOfNode(tx *txn.Tx, id string) (*txn.PoolTx, node.Node, error) {
	for _, p := range tx.Pools {
		if n, ok := p.FindNode(id); ok {
			return p, n, nil
		}
	}
	n, err := tx.Port.Node(id)
	if err != nil {
		return nil, n, fmt.Errorf("reading node: %w", err)
	}
	p, err := tx.LockPool(n.PoolID)
	if err != nil {
		return nil, n, fmt.Errorf("locking pool: %w", err)
	}
	if live, ok := p.FindNode(id); ok {
		return p, live, nil
	}
	if n, err = tx.Port.Node(id); err != nil { // it is over
		return nil, n, fmt.Errorf("reading node: %w", err)
	}
	return p, n, nil
}

// BeginCreate commits the intent to make a node's machine, with its token,
// before anything is asked of a provider. Repeated, it returns the same token.
func (l Fleet) BeginCreate(ctx context.Context, g ledger.Guard, nodeID string) (ledger.CreateIntent, error) {
	var intent ledger.CreateIntent
	err := onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		intent = ledger.CreateIntent{Node: n, Pool: p.Pool, Wanted: true}
		switch n.State() {
		case node.Requested, node.Provisioning:
			if p.Pool.Recovery.Active() {
				return fmt.Errorf("%s: %w", p.Pool.Name, ledger.ErrRecovering)
			}
			if n.State() == node.Provisioning {
				return nil
			}
			n.Offering, _ = chooseOffering(p, n, tx.Now())
			n.Token = createToken(n)
			if l.Config.DeadMan > 0 {
				n.ExpiresAt = n.RequestedAt.Add(l.Config.DeadMan)
			}
			var err error
			intent.Node, err = tx.StepNode(p, n, node.Provision, n.Reason, describeOffering(p, n.Offering))
			return err
		default:
			intent.Wanted = false
			tx.FinishTask(g, time.Time{})
			return nil
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
func (l Fleet) ReportCreated(ctx context.Context, g ledger.Guard, nodeID string, m ledger.Instance) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if n.State() == node.Provisioning {
			n = withInstance(n, m, tx.Now())
			n.Simulated = m.Simulated
			n, err := tx.StepNode(p, n, node.Boot, n.Reason, fmt.Sprintf("%s is booting", m.ProviderID))
			if err != nil {
				return err
			}
			tx.AddTask(ledger.TaskCheckNode, n.ID, tx.Now().Add(l.Config.CheckEvery))
		}
		tx.WakePlan(p.Pool.ID)
		tx.FinishTask(g, time.Time{})
		return nil
	})
}

// ReportRefused ends a node that the provider will not make. The pool asks for
// nothing until some time later, twice as long after each refusal in a row.
func (l Fleet) ReportRefused(ctx context.Context, g ledger.Guard, nodeID, kind, message string, stockOut bool) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if n.State() == node.Provisioning {
			if _, err := tx.StepNode(p, n, node.Refuse, kind, ledger.ClipText(message, 200)); err != nil {
				return err
			}
			wait := l.Config.StockOut
			if !stockOut { // a quota, rights or the request itself: time alone does not mend it
				wait *= 10
			}
			noteFailedBoot(tx, p, n, wait)
		}
		tx.WakePlan(p.Pool.ID)
		tx.FinishTask(g, time.Time{})
		return nil
	})
}

// withInstance returns the node with its machine. A provider that does not say when the
// machine was born is believed to have made it now.
func withInstance(n node.Node, m ledger.Instance, now time.Time) node.Node {
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
func (l Fleet) BeginCheck(ctx context.Context, g ledger.Guard, nodeID string) (
	n node.Node, p ledger.Pool, wanted bool, err error) {
	return beginNodeTask(ctx, l.Engine, g, nodeID, node.Booting, node.Ready, node.Draining, node.Quarantined)
}

// BeginDelete reads what there is to remove of a node; wanted is false when
// there is nothing, and the task is finished.
func (l Fleet) BeginDelete(ctx context.Context, g ledger.Guard,
	nodeID string) (n node.Node, p ledger.Pool, wanted bool, err error) {
	n, p, wanted, err = beginNodeTask(ctx, l.Engine, g, nodeID, node.Deprovisioning, node.NeedsAttention)
	if err == nil && wanted && p.Recovery.Active() {
		err = fmt.Errorf("%s: %w", p.Name, ledger.ErrRecovering)
	}
	return n, p, wanted, err
}

func beginNodeTask(ctx context.Context, l *txn.Engine, g ledger.Guard, nodeID string,
	in ...node.State) (n node.Node, p ledger.Pool, wanted bool, err error) {
	err = l.Store.Read(ctx, func(r ledger.Reader) error {
		if n, err = r.Node(nodeID); err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		if p, err = r.Pool(n.PoolID); err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		return nil
	})
	if err != nil || slices.Contains(in, n.State()) {
		return n, p, err == nil, err
	}
	return n, p, false, FinishTask(ctx, l, g)
}

// ReportBooting looks again soon.
func (l Fleet) ReportBooting(ctx context.Context, g ledger.Guard, _ string) error {
	return RetryTask(ctx, l.Engine, g, l.Config.CheckEvery, "")
}

// ReportUp passes a booting node, whose boot time is learned, unless its daemon is awaited; a node that was
// up already is looked at again later.
func (l Fleet) ReportUp(ctx context.Context, g ledger.Guard, nodeID string, m ledger.Instance) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if n.State() == node.Booting {
			if passes, err := passDaemon(tx, g, p, n, m.Devices); err != nil || !passes {
				return err
			}
			took := tx.Now().Sub(n.RequestedAt)
			n.Address, n.Devices = m.Address, m.Devices
			if _, err := tx.StepNode(p, n, node.BecomeReady, n.Reason,
				fmt.Sprintf("%s proved usable after %s", phrase.Count(len(m.Devices), "GPU"),
					phrase.Span(took))); err != nil {
				return err
			}
			if err := learnBoot(tx, g, p, n); err != nil {
				return err
			}
			tx.WakePlan(p.Pool.ID)
		}
		if n.State() == node.Quarantined {
			resuming := n.Quarantine.Resuming
			if err := finishInspection(tx, p, n, m); err != nil || resuming {
				tx.FinishTask(g, time.Time{}) // ResumeNode made one more check
				return err
			}
		}
		tx.FinishTask(g, tx.Now().Add(lookWithin(l.Engine, m)))
		return nil
	})
}

// lookWithin is how long a node that is up is left alone.
func lookWithin(l *txn.Engine, m ledger.Instance) time.Duration {
	if m.CheckWithin > 0 {
		return min(m.CheckWithin, l.Config.VerifyEvery)
	}
	return l.Config.VerifyEvery
}

// ReportUnhealthy takes a node out of use, and goes on looking at it. A booting
// one is given up, and counts against the pool like a refusal.
func (l Fleet) ReportUnhealthy(ctx context.Context, g ledger.Guard, nodeID, reason string) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		tx.WakePlan(p.Pool.ID)
		switch n.State() {
		case node.Ready:
			if _, err := tx.StepNode(p, n, node.Quarantine, reason, ""); err != nil {
				return err
			}
			tx.FinishTask(g, tx.Now().Add(l.Config.VerifyEvery))
			return nil
		case node.Booting:
			return giveUpBoot(tx, p, n, g, reason)
		case node.Quarantined:
			if n.Quarantine.Resuming {
				keepQuarantined(tx, p, n, reason)
			}
		}
		tx.FinishTask(g, time.Time{})
		return nil
	})
}

// ReportMissing notes that the provider does not know a node's machine any
// more, or says that it is over. It is removed like any other: only the provider's
// word, twice, ends it. Nothing is charged after the end that the provider names.
func (l Fleet) ReportMissing(ctx context.Context, g ledger.Guard, nodeID string, loss ledger.Loss) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if _, err := node.Machine.Next(n.State(), node.Lose); err == nil {
			reason, message := describeLoss(n, loss)
			if !loss.Ended.IsZero() {
				n = billedUntil(n, loss.Ended.Truncate(time.Microsecond))
				message += "; it is not billed after " + loss.Ended.UTC().Format(time.RFC3339)
			}
			if _, err := tx.StepNode(p, n, node.Lose, reason, message); err != nil {
				return err
			}
		}
		tx.WakePlan(p.Pool.ID)
		tx.FinishTask(g, time.Time{})
		return nil
	})
}

// ReportAdopted stores a machine's id that was learned late.
func (l Fleet) ReportAdopted(ctx context.Context, nodeID string, m ledger.Instance) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if n.ProviderID == "" && !node.Machine.Terminal(n.State()) {
			p.PutNode(withInstance(n, m, tx.Now()))
		}
		return nil
	})
}

// ReportAbsent notes that the provider says that a machine is gone. Said twice,
// far enough apart, it is believed. ended is until when the provider charges;
// zero where it does not say, and then it is when it was first gone.
func (l Fleet) ReportAbsent(ctx context.Context, g ledger.Guard, nodeID string, ended time.Time) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if node.Machine.Terminal(n.State()) {
			tx.FinishTask(g, time.Time{})
			return nil
		}
		if cooled := p.Pool.Observed && n.ProviderID != ""; n.AbsentAt.IsZero() && !cooled {
			n.AbsentAt = tx.Now()
			p.PutNode(billedUntil(n, ended))
			tx.FinishTask(g, tx.Now().Add(l.Config.ConfirmGone))
			return nil
		}
		if n.AbsentAt.IsZero() {
			n.AbsentAt = tx.Now() // cooled
		} else if due := n.AbsentAt.Add(l.Config.ConfirmGone); tx.Now().Before(due) {
			tx.FinishTask(g, due)
			return nil
		}
		if _, err := tx.StepNode(p, billedUntil(n, ended), node.Confirm, n.Reason,
			"its provider said so twice"); err != nil {
			return err
		}
		tx.WakePlan(p.Pool.ID)
		tx.FinishTask(g, time.Time{})
		return nil
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
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, _ *txn.PoolTx, n node.Node) error {
		if n.ProviderID != machine || !node.Machine.Terminal(n.State()) || n.BilledUntil.Equal(until) ||
			until.Before(n.BilledFrom) {
			return nil
		}
		n.BilledUntil = until
		tx.Change.Nodes = append(tx.Change.Nodes, n)
		return nil
	})
}

// ReportStillThere tries a removal again later, less and less often, for ever;
// after many tries a person is asked to look.
func (l Fleet) ReportStillThere(ctx context.Context, g ledger.Guard, nodeID, failure string) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		if !n.AbsentAt.IsZero() {
			n.AbsentAt, n.BilledUntil = time.Time{}, time.Time{}
			p.PutNode(n)
		}
		t, err := tx.Port.Task(g.TaskID)
		if err != nil {
			return fmt.Errorf("reading task: %w", err)
		}
		if t.Attempt >= giveUpAfter && n.State() == node.Deprovisioning {
			if _, err := tx.StepNode(p, n, node.GiveUp, "not_removed", ledger.ClipText(failure, 200)); err != nil {
				return err
			}
		}
		tx.FailTask(g, tx.Now().Add(l.Config.RemoveEvery<<min(t.Attempt, 7)), failure)
		return nil
	})
}

// EmitNodeTask makes sure that a node which needs a kind of task has one on its
// way: work that was lost is asked for again. A task that exists is left alone.
func (l Fleet) EmitNodeTask(ctx context.Context, nodeID, kind string) error {
	return onNode(ctx, l.Engine, nodeID, func(tx *txn.Tx, _ *txn.PoolTx, _ node.Node) error {
		pending, err := tx.Port.Pending(kind, nodeID)
		if err != nil {
			return fmt.Errorf("looking for a pending task: %w", err)
		}
		if !pending {
			tx.AddTask(kind, nodeID, tx.Now())
		}
		return nil
	})
}

// RetryTask has a guarded task run once more after a while.
func RetryTask(ctx context.Context, l *txn.Engine, g ledger.Guard, after time.Duration, failure string) error {
	return l.InGroup(ctx, workerActor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.FailTask(g, tx.Now().Add(after), failure)
		return nil
	})
}

// FinishTask ends a guarded task; a keyed one sleeps until it is woken.
func FinishTask(ctx context.Context, l *txn.Engine, g ledger.Guard) error {
	return l.InGroup(ctx, workerActor, &ledger.LockHint{}, func(tx *txn.Tx) error {
		tx.FinishTask(g, time.Time{})
		return nil
	})
}
