package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// looked is one node under a check or a removal, with whom to ask about it.
type looked struct {
	Claim
	node     node.Node
	pool     ledger.Pool
	provider provisioners.Provisioner
}

// checkNode asks whether the node's machine is up yet, or still there.
func (w Work) checkNode(ctx context.Context, c Claim) error {
	n, pool, wanted, err := w.Ledger.BeginCheck(ctx, c.Guard, c.Task.Subject)
	if err != nil {
		return fmt.Errorf("beginning to check node %s: %w", c.Task.Subject, err)
	}
	if !wanted {
		return nil
	}
	p, err := w.findProvisioner(n.Offering.Provisioner)
	if err == nil {
		err = w.lookAtInstance(ctx, looked{Claim: c, node: n, pool: pool, provider: p})
	}
	if err != nil {
		return fmt.Errorf("checking node %s: %w", n.ID, err)
	}
	return nil
}

func (w Work) lookAtInstance(ctx context.Context, l looked) error {
	found, err := l.provider.Get(ctx, l.node.ProviderID)
	switch {
	case provisioners.KindOf(err) == provisioners.KindNotFound:
		return w.handleAbsent(ctx, l)
	case err != nil:
		return err
	case isEnding(found.Phase):
		loss := ledger.Loss{Preempted: found.Preempted, Ended: found.EndedAt}
		if found.Notice != nil {
			loss.Why = found.Notice.Message
		}
		return w.Ledger.ReportMissing(ctx, l.Guard, l.node.ID, loss)
	case found.Phase != provisioners.Running:
		return w.Ledger.ReportBooting(ctx, l.Guard, l.node.ID)
	default:
		return w.checkRunning(ctx, l, found)
	}
}

// checkRunning is the health gate: a machine that runs is not yet one that can serve.
// Of a node that serves nobody any more, it is enough that it stands.
func (w Work) checkRunning(ctx context.Context, l looked, found provisioners.Instance) error {
	if err := w.renewDeadMan(ctx, l); err != nil {
		return err
	}
	found.Devices = l.pool.Units(found.Devices)
	fault := unfitReason(l.pool, found.Devices)
	if fault == "" && l.node.State() == node.Ready && !haveSameGPUs(l.node.Devices, found.Devices) {
		fault = "gpu_changed"
	}
	serves := l.node.State() == node.Booting || l.node.State() == node.Ready || l.node.Quarantine.Resuming
	switch {
	case serves && fault == "" && found.Notice != nil && !l.node.Quarantine.Resuming:
		return w.Ledger.ReportNotice(ctx, l.Guard, l.node.ID, ledger.Notice{
			Kind: string(found.Notice.Kind), At: found.Notice.At, Message: found.Notice.Message,
		})
	case !serves || fault == "":
		return w.Ledger.ReportUp(ctx, l.Guard, l.node.ID, ledgerInstance(found))
	}
	w.Logger.WarnContext(ctx, "a node does not pass its health gate", "fault", fault)
	return w.Ledger.ReportUnhealthy(ctx, l.Guard, l.node.ID, fault)
}

// renewDeadMan moves the machine's dead-man switch when half of its time is over. A
// provider that could not be told is tried again at the next look, of which
// there are many in the other half.
func (w Work) renewDeadMan(ctx context.Context, l looked) error {
	renewer, able := l.provider.(provisioners.Renewer)
	until, due := w.Ledger.Renewal(l.node, l.Now)
	if !able || !due {
		return nil
	}
	if err := renewer.Renew(ctx, l.node.ProviderID, until); err != nil {
		w.Logger.WarnContext(ctx, "a machine could not be renewed; it is tried again", "expires_at", l.node.ExpiresAt,
			"error", err)
		return nil
	}
	if err := w.Ledger.ReportRenewed(ctx, l.node.ID, until); err != nil {
		return fmt.Errorf("noting that it was renewed: %w", err)
	}
	return nil
}

// haveSameGPUs reports whether a machine still has the GPUs that its node was proved
// with: whoever holds one holds it by its UUID.
func haveSameGPUs(proved, found []capacity.Device) bool {
	known := map[string]bool{}
	for _, d := range proved {
		known[d.UUID] = true
	}
	for _, d := range found {
		if !known[d.UUID] {
			return false
		}
	}
	return len(proved) == len(found)
}

// memoryShort is the part of a GPU's promised memory, in percent, below which it
// is not what was ordered. Drivers keep a little for themselves.
const memoryShort = 90

// unfitReason returns the code of what is wrong with a machine's devices, empty for
// nothing. A second device with the same UUID is one device seen twice.
func unfitReason(pool ledger.Pool, devices []capacity.Device) string {
	if len(devices) != pool.PerNode {
		return "gpu_count"
	}
	seen := map[string]bool{}
	for _, d := range devices {
		switch {
		case d.UUID == "" || seen[d.UUID]:
			return "gpu_identity"
		case d.Model != "" && pool.Model != "" && !strings.EqualFold(d.Model, pool.Model):
			return "gpu_model"
		case d.MemoryMiB > 0 && d.MemoryMiB*100 < pool.MemoryMiB*memoryShort:
			return "gpu_memory"
		}
		seen[d.UUID] = true
	}
	return ""
}

// handleAbsent handles a machine that its provider says it does not know. That is
// believed of a machine that is old enough, and only when a complete list lacks
// it too: healthy machines have been given up on one wrong answer
// (aws/aws-parallelcluster-node#694, kubernetes-sigs/cluster-api-provider-aws#2915).
func (w Work) handleAbsent(ctx context.Context, l looked) error {
	if w.isFresh(l.node, l.Now) {
		return w.retryCheck(l)
	}
	list, err := l.provider.List(ctx, w.Deployment)
	if err != nil {
		return fmt.Errorf("seeking a second opinion: %w", err)
	}
	if _, listed := findInstance(list, l.node); listed || !list.Complete {
		return w.retryCheck(l)
	}
	return w.Ledger.ReportMissing(ctx, l.Guard, l.node.ID, ledger.Loss{})
}

// retryCheck asks for another try with back-off; the ledger learns nothing.
func (w Work) retryCheck(l looked) error {
	return provisioners.Errorf(provisioners.KindTransient, "%s does not know machine %s, which is not proof yet",
		l.provider.Name(), l.node.ProviderID)
}

// findInstance returns the node's machine in a list, one that still stands if there are
// several.
func findInstance(list provisioners.List, n node.Node) (provisioners.Instance, bool) {
	var best provisioners.Instance
	found := false
	for _, i := range list.Instances {
		ours := i.Token == n.Token && n.Token != "" || i.ID == n.ProviderID && n.ProviderID != "" || i.NodeID == n.ID
		if ours && (!found || isEnding(best.Phase)) {
			best, found = i, true
		}
	}
	return best, found
}
