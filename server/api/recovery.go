package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func recoveryEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "getRecovery", Method: http.MethodGet, Path: "/recovery", Tag: "capacity",
			Policy: auth.Operator, Summary: "Show the pools that only reconcile, and machines that belong to no node"},
			getRecovery),
		serve(a, operation.Operation{ID: "beginRecovery", Method: http.MethodPost, Path: "/recovery/begin",
			Tag: "capacity", Policy: auth.Operator,
			Summary: "Begin recovery: nothing is created, ended or handed out until it is confirmed"}, beginRecovery),
		serve(a, operation.Operation{ID: "confirmRecovery", Method: http.MethodPost, Path: "/recovery/confirm",
			Tag: "capacity", Policy: auth.Operator, Summary: "End recovery: work resumes on what the ledger knows now"},
			confirmRecovery),
		serve(a, operation.Operation{ID: "acceptJournal", Method: http.MethodPost, Path: "/recovery/journal",
			Tag: "capacity", Policy: auth.Operator,
			Summary: "Accept the journal although seals are missing, and seal again from here"},
			acceptJournal),
	}
}

func getRecovery(ctx context.Context, a *API, _ *struct{}) (*One[contract.RecoveryState], error) {
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
		orphans, err := r.Orphans(ledger.OrphanFilter{Billed: true})
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

func beginRecovery(ctx context.Context, a *API, in *struct {
	Body contract.RecoveryBegin
},
) (*One[contract.RecoveryState], error) {
	if _, err := a.Ledger.BeginRecovery(ctx, auth.From(ctx), "", in.Body.Reason); err != nil {
		return nil, err
	}
	return getRecovery(ctx, a, nil)
}

func confirmRecovery(ctx context.Context, a *API, _ *struct{}) (*One[contract.RecoveryState], error) {
	if _, err := a.Ledger.EndRecovery(ctx, auth.From(ctx)); err != nil {
		return nil, err
	}
	return getRecovery(ctx, a, nil)
}

func acceptJournal(ctx context.Context, a *API, _ *struct{}) (*One[contract.RecoveryState], error) {
	if err := a.Ledger.AcceptJournal(ctx, auth.From(ctx)); err != nil {
		return nil, err
	}
	return getRecovery(ctx, a, nil)
}
