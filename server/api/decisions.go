package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func decisionEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "listDecisions", Method: http.MethodGet, Path: "/decisions", Tag: "decisions",
			Policy: auth.AnyKey, Summary: "List decisions, the newest first; an agent sees its own"},
			listDecisions),
		serve(a, operation.Operation{ID: "getDecision", Method: http.MethodGet, Path: "/decisions/{id}",
			Tag: "decisions", Policy: auth.AnyKey,
			Summary: "Read a decision with the record that reproduces it"}, getDecision),
	}
}

func listDecisions(ctx context.Context, a *API, in *struct {
	Page
	OfOrganization
	Subject string `query:"subject" maxLength:"64" doc:"Id of what it is about."`
	Pool    string `query:"pool" maxLength:"64" doc:"Id or name."`
	Kind    string `query:"kind" enum:"admission,waitlist,refusal,promotion,displacement,prewarm,reclaim,placement"`
},
) (out *ListOut[contract.Decision], err error) {
	actor := auth.From(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		id, err := a.resolvePool(ctx, r, in.Pool)
		if err != nil {
			return err
		}
		f := ledger.DecisionFilter{Subject: in.Subject, PoolID: id, Kind: ledger.DecisionKind(in.Kind),
			Actor: ownKeyOnly(actor)}
		out, err = readPage(in.Page, "dec", func(p ledger.Page) ([]ledger.Event, error) {
			if f.Before, err = strconv.ParseInt("0"+p.After, 10, 64); err != nil {
				return nil, problem.Parameter("cursor", "must be next_cursor of the page before")
			}
			return r.Decisions(s, f, p.Limit)
		}, func(e ledger.Event) string { return strconv.FormatInt(e.Seq, 10) }, encodeDecision)
		return err
	})
	return out, err
}

// ownKeyOnly narrows what an agent sees to what it did itself.
func ownKeyOnly(actor ledger.Actor) string {
	if actor.Kind == ledger.AgentKey {
		return actor.KeyID
	}
	return ""
}

// getDecision takes the number of the event, as in a list, or the id that a
// refusal was answered with.
func getDecision(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Decision], error) {
	actor := auth.From(ctx)
	out := &One[contract.Decision]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		f := ledger.DecisionFilter{Actor: ownKeyOnly(actor), Subject: in.ID}
		if seq, ok := decisionSeq(in.ID); ok {
			f = ledger.DecisionFilter{Actor: ownKeyOnly(actor), Seq: seq}
		}
		found, err := r.Decisions(actor.Scope(), f, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 || !strings.HasPrefix(in.ID, ids.Decision+"_") {
			return ledger.ErrNotFound
		}
		out.Body, err = wholeDecision(r, actor, found[0])
		return err
	})
	return out, err
}

func decisionID(seq int64) string { return ids.Decision + "_" + strconv.FormatInt(seq, 10) }

func decisionSeq(id string) (int64, bool) {
	text, ours := strings.CutPrefix(id, ids.Decision+"_")
	seq, err := strconv.ParseInt(text, 10, 64)
	return seq, ours && err == nil && seq > 0
}

// encodeDecision leaves the record out: a list of them would be long.
func encodeDecision(e ledger.Event) contract.Decision {
	out := contract.Decision{ID: decisionID(e.Seq), Time: e.At.UTC(), Event: e.Type, Subject: e.Subject,
		OrganizationID: e.OrganizationID,
		PoolID:         e.PoolID, Actor: e.Actor, Reason: e.Reason, Message: e.Message}
	if r, err := ledger.ReadDecision(e.Decision); err == nil {
		out.Kind, out.Engine, out.Also = string(r.Kind), string(r.Engine), problem.Reasons(r.Also)
	}
	return out
}

// wholeDecision adds the record, unless it tells of the work of others to
// somebody who may not know of it.
func wholeDecision(r ledger.Reader, actor ledger.Actor, e ledger.Event) (contract.Decision, error) {
	out := encodeDecision(e)
	d, err := ledger.ReadDecision(e.Decision)
	if err != nil {
		return out, err
	}
	foreign, err := tellsOfOthers(r, actor, d)
	if err != nil {
		return out, err
	}
	if out.Redacted = foreign; !foreign {
		out.Record = d.Record
	}
	return out, nil
}

var bookingID = regexp.MustCompile(`(?:` + ids.Reservation + `|` + ids.Allocation + `)_[0-9a-z]{26}`)

// tellsOfOthers reports whether a record names a booking that the actor may not
// see, or is about somebody else's request: the one that others gave way to.
func tellsOfOthers(r ledger.Reader, actor ledger.Actor, d ledger.DecisionRecord) (bool, error) {
	if actor.Role == ledger.Operator {
		return false, nil
	}
	if d.Kind == ledger.DecisionDisplacement {
		return true, nil
	}
	for _, id := range bookingID.FindAllString(string(d.Record), -1) {
		var err error
		if strings.HasPrefix(id, ids.Reservation) {
			_, err = r.Reservation(actor.Scope(), id)
		} else {
			_, err = r.Allocation(actor.Scope(), id)
		}
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return true, nil
		case err != nil:
			return true, err
		}
	}
	return false, nil
}
