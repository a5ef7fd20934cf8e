package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/reconcile"
)

// reportOffers tells the ledger what the provisioners of declared pools offer, where this process is the whole
// installation: what its worker of before had reported is of the configuration of before.
func reportOffers(ctx context.Context, a *app, pools []ledger.NewPool) error {
	for _, p := range a.provs {
		if !slices.ContainsFunc(pools, func(n ledger.NewPool) bool { return isOfferedBy(n, p) }) {
			continue
		}
		offers, err := p.Offers(ctx)
		if err != nil {
			return fmt.Errorf("asking provisioner %q what it offers: %w", p.Name(), err)
		}
		if err := a.ledger.ReportOffers(ctx, p.Name(), reconcile.OffersOf(offers)); err != nil {
			return fmt.Errorf("reporting what provisioner %q offers: %w", p.Name(), err)
		}
	}
	return nil
}

// isOfferedBy reports whether any machines of a pool come from a provisioner.
func isOfferedBy(n ledger.NewPool, p provisioners.Provisioner) bool {
	for _, s := range n.Definition.Offerings() {
		if s.Provisioner == p.Name() {
			return true
		}
	}
	return false
}

func (a *app) noProvisioner(name, at string) error {
	return a.cfg.valueError(at+".provisioner", fmt.Sprintf("there is no provisioner %q", name),
		"add it under provisioners, or name one that is there")
}
