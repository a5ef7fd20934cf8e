package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// removeInstance asks for the end of a node's machine and looks whether it has come. It
// is run again until the ledger has heard twice, apart, that the machine is gone.
func (w Work) removeInstance(ctx context.Context, c Claim) error {
	n, pool, wanted, err := w.Ledger.BeginDelete(ctx, c.Guard, c.Task.Subject)
	if err != nil {
		return fmt.Errorf("beginning to delete node %s: %w", c.Task.Subject, err)
	}
	if !wanted {
		return nil
	}
	p, err := w.findProvisioner(n.Offering.Provisioner)
	if err != nil {
		return fmt.Errorf("deleting node %s: %w", n.ID, err)
	}
	l := looked{Claim: c, node: n, pool: pool, provider: p}
	if n.ProviderID == "" {
		return w.adoptUnanswered(ctx, l)
	}
	return w.deleteInstance(ctx, l)
}

// adoptUnanswered finds the machine of a node whose creation was never answered. Asking
// for it again by its token would find it too, but could also make it.
func (w Work) adoptUnanswered(ctx context.Context, l looked) error {
	list, err := l.provider.List(ctx, w.Deployment)
	if err != nil {
		return fmt.Errorf("looking for the machine of node %s: %w", l.node.ID, err)
	}
	found, ok := findInstance(list, l.node)
	switch {
	case ok:
		if err := w.Ledger.ReportAdopted(ctx, l.node.ID, newInstance(l.provider, found)); err != nil {
			return fmt.Errorf("adopting the machine of node %s: %w", l.node.ID, err)
		}
		l.node.ProviderID = found.ID
		return w.deleteInstance(ctx, l)
	case !list.Complete:
		return provisioners.Errorf(provisioners.KindTransient,
			"the list of %s is incomplete: whether node %s has a machine is not known", l.provider.Name(), l.node.ID)
	case l.Now.Sub(l.node.RetiredAt) < w.ProviderDelay:
		return provisioners.Errorf(provisioners.KindTransient,
			"node %s may have a machine that %s does not list yet", l.node.ID, l.provider.Name())
	}
	return w.reportAbsent(ctx, l, time.Time{})
}

func (w Work) deleteInstance(ctx context.Context, l looked) error {
	if err := l.provider.Delete(ctx, l.node.ProviderID); err != nil &&
		provisioners.KindOf(err) != provisioners.KindNotFound {
		return w.reportStanding(ctx, l, fmt.Errorf("deleting: %w", err))
	}
	found, err := l.provider.Get(ctx, l.node.ProviderID)
	switch {
	case provisioners.KindOf(err) == provisioners.KindNotFound && !w.isFresh(l.node, l.Now),
		err == nil && found.Phase == provisioners.Terminated:
		return w.reportAbsent(ctx, l, found.EndedAt)
	case err != nil:
		return w.reportStanding(ctx, l, fmt.Errorf("looking whether it is gone: %w", err))
	}
	return w.reportStanding(ctx, l, nil)
}

func (w Work) reportAbsent(ctx context.Context, l looked, ended time.Time) error {
	if err := w.Ledger.ReportAbsent(ctx, l.Guard, l.node.ID, ended); err != nil {
		return fmt.Errorf("reporting that the machine of node %s is gone: %w", l.node.ID, err)
	}
	return nil
}

// reportStanding reports that the machine is not gone. What failed counts in the ledger,
// which calls a person when it has failed for too long; a provider that asked
// for patience and a worker that is ending are no failures.
func (w Work) reportStanding(ctx context.Context, l looked, failure error) error {
	text := ""
	if failure != nil {
		if ctx.Err() != nil || provisioners.KindOf(failure) == provisioners.KindThrottled {
			return fmt.Errorf("deleting node %s: %w", l.node.ID, failure)
		}
		text = summarizeError(failure)
	}
	if err := w.Ledger.ReportStillThere(ctx, l.Guard, l.node.ID, text); err != nil {
		return fmt.Errorf("reporting that the machine of node %s stands: %w", l.node.ID, err)
	}
	return nil
}
