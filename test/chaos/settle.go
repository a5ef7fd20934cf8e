package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/test/chaos/audit"
	"github.com/forewarm/forewarm/test/chaos/load"
	"github.com/forewarm/forewarm/test/chaos/site"
)

// handingBack is how long the GPUs of nodes with daemons may take until they can be had
// again, once everything is whole: longer than a daemon's proof may take, and then another
// machine.
const handingBack = 4 * time.Minute

// visitLast gives everything back, waits until nothing of nodes with daemons is withheld, and
// has last holders come to all GPUs that the pool keeps. It returns what is not so after a
// bounded time.
func (g *game) visitLast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, handingBack)
	defer cancel()
	err := g.awaitQuiet(ctx, func(ctx context.Context) error {
		rows, err := audit.Read(ctx, g.site.Postgres.URL(), false)
		if err == nil {
			err = errors.Join(asErrors(append(rows.Withheld(site.Bare), rows.Withheld(site.Shared)...))...)
		}
		return errors.Join(g.giveAllBack(ctx), err)
	})
	if err != nil {
		return fmt.Errorf("GPUs of nodes with daemons are withheld after %v: %w", handingBack, err)
	}
	g.printProgress("nothing of nodes with daemons is withheld")
	if err := g.load.LastVisits(ctx, site.RackKept*site.GPUsPerNode); err != nil {
		return fmt.Errorf("visiting nodes with daemons in the end: %w", err)
	}
	return nil
}

func asErrors(texts []string) (all []error) {
	for _, text := range texts {
		all = append(all, errors.New(text))
	}
	return all
}

// endEverything gives everything back and waits until nothing is booked, no machine
// stands, and the ledger has written down what the cloud has written down. It
// returns what is not so after a bounded time, nothing when all is quiet.
func (g *game) endEverything(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	err := g.awaitQuiet(ctx, func(ctx context.Context) error {
		if err := errors.Join(g.unpinPools(ctx), g.giveAllBack(ctx)); err != nil {
			return err
		}
		return g.requireQuiet(ctx)
	})
	if err != nil {
		return fmt.Errorf("not quiet after %v: %w", settling, err)
	}
	g.printProgress("all is quiet")
	return nil
}

// awaitQuiet tries again until there is no error, or ctx has ended, and says what it waits for.
func (g *game) awaitQuiet(ctx context.Context, try func(context.Context) error) error {
	for said := time.Now(); ; {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if time.Since(said) > 2*watchEvery {
			said = time.Now()
			g.printProgress("waiting: %v", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// unpinPools lets pools keep no machine.
func (g *game) unpinPools(ctx context.Context) error {
	api, err := g.operatorClient()
	if err != nil {
		return err
	}
	for p, err := range api.Pools(ctx, client.Filter{}) {
		if err != nil {
			return fmt.Errorf("listing pools: %w", err)
		}
		if p.MinNodes == 0 {
			continue
		}
		none := 0
		if _, err := api.PatchPool(ctx, p.ID, p.Version, contract.PoolPatch{MinNodes: &none}); err != nil {
			return fmt.Errorf("letting pool %s go: %w", p.Name, err)
		}
	}
	return nil
}

func (g *game) operatorClient() (*client.Client, error) {
	return g.load.Client(g.site.Servers[0].URL, g.site.Key)
}

// giveAllBack releases and cancels whatever anybody still has.
func (g *game) giveAllBack(ctx context.Context) error {
	for _, t := range g.load.Tenants() {
		if err := giveBack(ctx, t); err != nil {
			return fmt.Errorf("giving back what %s has: %w", t.ID, err)
		}
	}
	return nil
}

func giveBack(ctx context.Context, t *load.Tenant) error {
	for a, err := range t.API[0].Allocations(ctx, client.Filter{}) {
		if err != nil {
			return err
		}
		if _, err := t.API[0].Release(ctx, a.ID); isUnexpected(err) {
			return err
		}
	}
	for v, err := range t.API[0].Reservations(ctx, client.Filter{}) {
		if err != nil {
			return err
		}
		if _, err := t.API[0].CancelReservation(ctx, v.ID); isUnexpected(err) {
			return err
		}
	}
	return nil
}

// isUnexpected is an error other than that it ended meanwhile.
func isUnexpected(err error) bool {
	var problem *client.Error
	return err != nil && !(errors.As(err, &problem) && problem.Problem.Code == contract.CodeStateConflict)
}

// requireQuiet says what is not quiet yet.
func (g *game) requireQuiet(ctx context.Context) error {
	rows, err := audit.Read(ctx, g.site.Postgres.URL(), false)
	if err != nil {
		return err
	}
	for _, p := range rows.Pools {
		if n := len(p.Reservations) + len(p.Allocations); n > 0 {
			return fmt.Errorf("%d bookings live in pool %s", n, p.Pool.Name)
		}
	}
	for _, n := range rows.Nodes {
		if !node.Machine.Terminal(n.State()) {
			return fmt.Errorf("node %s is %s (%s)", n.ID, n.State(), n.Reason)
		}
	}
	bill := g.site.Bill()
	for _, m := range bill {
		if m.Live {
			return fmt.Errorf("machine %s of node %s stands", m.ID, m.Node)
		}
	}
	if wrong := rows.Accounts(bill); len(wrong) > 0 {
		return errors.New(wrong[0])
	}
	return nil
}

// outage is for how long the sweep may be kept from its work by what else is
// broken.
const outage = time.Minute

// ownerless is the longest that a machine may stand without an owner.
const ownerless = site.Grace + site.Apart + 2*site.Sweep + outage
