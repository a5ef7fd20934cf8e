package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/server/auth"
)

func (a *API) registerShares() {
	registerOperation(a, operation{http.MethodGet, "/pools/{id}/shares", "getShares", "capacity", "Fair shares of a pool", 0},
		a.getShares)
}

func (a *API) getShares(ctx context.Context, in *struct{ ByID }) (*One[contract.Shares], error) {
	pool, found, err := a.Ledger.Shares(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	out := contract.Shares{PoolID: pool.ID, Items: make([]contract.Share, len(found))}
	for i, s := range found {
		out.Items[i] = contract.Share{OrganizationID: s.OrganizationID, Weight: s.Weight, Share: s.Share,
			IdleFactor: s.Factor,
			GPUHours:   s.Usage.Held[quota.GPUs] / 3600, IdleGPUHours: s.Usage.Idle[quota.GPUs] / 3600}
	}
	return &One[contract.Shares]{Body: out}, nil
}
