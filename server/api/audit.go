package api

import (
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func auditEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "verifyJournal", Method: http.MethodGet, Path: "/audit/verify",
			Tag: "decisions", Policy: auth.Operator, Summary: "Verify a part of the journal against its seals"},
			verifyJournal),
	}
}

func verifyJournal(ctx context.Context, a *API, in *struct {
	After  string `query:"after" maxLength:"90" doc:"last_seal of the previous page; absent: begin with the first seal."`
	Anchor string `query:"anchor" maxLength:"90"`
	Limit  int    `query:"limit" minimum:"1" maximum:"20" default:"20" doc:"How many seals to check."`
},
) (*One[contract.AuditPage], error) {
	req := ledger.AuditRequest{Limit: in.Limit}
	var err error
	if req.After, err = ledger.ParseAnchor(in.After); err != nil {
		return nil, problem.Parameter("after", err.Error())
	}
	if req.Known, err = ledger.ParseAnchor(in.Anchor); err != nil {
		return nil, problem.Parameter("anchor", err.Error())
	}
	found, err := a.Ledger.VerifyJournal(ctx, auth.From(ctx), req)
	if err != nil {
		return nil, err
	}
	out := contract.AuditPage{Seals: found.Seals, Events: found.Events, More: found.More, NewestSeal: found.Newest,
		Unsealed: found.Unsealed}
	if found.Last.Number > 0 {
		out.LastSeal = found.Last.Anchor()
	}
	if !found.UnsealedSince.IsZero() {
		since := found.UnsealedSince.UTC()
		out.UnsealedSince = &since
	}
	if f := found.Finding; f != nil {
		out.Finding = &contract.AuditFinding{Kind: f.Kind, Seal: f.Seal, Event: f.Event, What: f.What}
	}
	return &One[contract.AuditPage]{Body: out}, nil
}
