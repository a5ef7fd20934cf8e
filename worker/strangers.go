package worker

import (
	"context"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// tellStrangers says that an exclusive provisioner knows none of its nodes' machines here. They are in the process or
// the data directory of the worker that had it before, so that their nodes will be taken for lost: whoever did not mean
// that has to know at once, and where to go back to. before is where that worker ran, if it is known.
func (w *Worker) tellStrangers(ctx context.Context, before string) {
	for _, p := range w.exclusive {
		n, err := w.countStrangers(ctx, p)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.cfg.Logger.WarnContext(ctx, "whether the machines of a provisioner are known here could not be read",
				"provisioner", p.Name(), "error", err)
		case n > 0:
			w.cfg.Logger.ErrorContext(ctx, "this worker knows none of a provisioner's machines: they are in the data "+
				"directory of the worker that had it before, and their nodes are taken for lost; to keep them, stop this worker "+
				"and start that one, or this one with its data directory", "provisioner", p.Name(), "machines", n, "before",
				before)
		}
	}
}

// countStrangers counts the machines of live nodes where a provisioner knows none of them; 0: it knows some, or there
// are none.
func (w *Worker) countStrangers(ctx context.Context, p provisioners.Provisioner) (n int, err error) {
	list, err := p.List(ctx, w.cfg.Deployment)
	if err != nil {
		return 0, fmt.Errorf("listing machines: %w", err)
	}
	known := map[string]bool{}
	for _, i := range list.Instances {
		known[i.ID] = true
	}
	err = w.ledger.Store().Read(ctx, func(r ledger.Reader) error {
		n = 0
		nodes, err := r.Nodes(ledger.NodeFilter{Provisioner: p.Name(), Live: true}, ledger.Page{Limit: 500})
		for _, one := range nodes {
			if known[one.ProviderID] {
				n = 0
				return nil
			}
			if one.ProviderID != "" {
				n++
			}
		}
		return err
	})
	return n, err
}
