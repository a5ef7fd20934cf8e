package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) registerRecovery() {
	registerOperation(a, operation{http.MethodGet, "/recovery", "getRecovery", "capacity",
		"What only reconciles, and the machines that no node stands for", 0}, a.getRecovery)
	registerOperation(a, operation{http.MethodPost, "/recovery/begin", "beginRecovery", "capacity",
		"Make, end and hand out nothing until it is confirmed", 0}, a.beginRecovery)
	registerOperation(a, operation{http.MethodPost, "/recovery/confirm", "confirmRecovery", "capacity",
		"Work again on what the ledger knows now", 0}, a.confirmRecovery)
	registerOperation(a, operation{http.MethodPost, "/recovery/journal", "acceptJournal", "capacity",
		"Accept the journal as it is, although seals of it are missing: seal again from here", 0}, a.acceptJournal)
}

func (a *API) getRecovery(ctx context.Context, _ *struct{}) (*One[contract.RecoveryState], error) {
	out := contract.RecoveryState{Pools: []contract.RecoveringPool{}, Orphans: []contract.OrphanMachine{}}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		pools, err := r.Pools(ledger.Page{})
		if err != nil {
			return err
		}
		for _, p := range pools {
			if p.Recovery.Active() {
				out.Pools = append(out.Pools, contract.RecoveringPool{PoolID: p.ID, Name: p.Name,
					Since: p.Recovery.Since.UTC(), Reason: p.Recovery.Reason})
			}
		}
		gap, err := a.Ledger.JournalGap(r)
		if err != nil {
			return err
		}
		if gap != nil {
			out.Journal = &contract.JournalGap{Since: gap.Since.UTC(), Reason: gap.What}
		}
		orphans, err := r.Orphans(ledger.OrphanFilter{Standing: true})
		for _, o := range orphans {
			out.Orphans = append(out.Orphans, contract.OrphanMachine{
				Machine: o.Machine, Provisioner: o.Source.Provisioner, NodeID: o.NodeID, InstanceType: o.Source.Type,
				PricePerNodeHour: formatMoney(o.Source.Price), BilledFrom: o.BilledFrom.UTC(),
			})
		}
		return err
	})
	out.Recovering = len(out.Pools) > 0
	return &One[contract.RecoveryState]{Body: out}, err
}

func (a *API) beginRecovery(ctx context.Context, in *struct {
	Body contract.RecoveryBegin
},
) (*One[contract.RecoveryState], error) {
	if _, err := a.Ledger.BeginRecovery(ctx, auth.From(ctx), "", in.Body.Reason); err != nil {
		return nil, err
	}
	return a.getRecovery(ctx, nil)
}

func (a *API) confirmRecovery(ctx context.Context, _ *struct{}) (*One[contract.RecoveryState], error) {
	if _, err := a.Ledger.EndRecovery(ctx, auth.From(ctx)); err != nil {
		return nil, err
	}
	return a.getRecovery(ctx, nil)
}

func (a *API) acceptJournal(ctx context.Context, _ *struct{}) (*One[contract.RecoveryState], error) {
	if err := a.Ledger.AcceptJournal(ctx, auth.From(ctx)); err != nil {
		return nil, err
	}
	return a.getRecovery(ctx, nil)
}
