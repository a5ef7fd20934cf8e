package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func prewarmEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "getPrewarm", Method: http.MethodGet, Path: "/prewarm", Tag: "capacity",
			Policy: auth.AnyKey, Summary: "Show whether speculative reservations are pre-warmed"}, getPrewarm),
		serveOnce(a, pausePrewarm(a), (*create[contract.PrewarmPauseCreate]).body, nil),
		serveOnce(a, resumePrewarm(a), (*create[contract.PrewarmResume]).body, nil),
	}
}

func getPrewarm(ctx context.Context, a *API, _ *struct{}) (*One[contract.Prewarm], error) {
	var found []ledger.Pause
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		found, err = r.Pauses()
		return err
	})
	return &One[contract.Prewarm]{Body: encodePauses(auth.From(ctx), found)}, err
}

// encodePauses tells of the pauses that concern whoever asks.
func encodePauses(actor ledger.Actor, found []ledger.Pause) contract.Prewarm {
	out := contract.Prewarm{Pauses: []contract.PrewarmPause{}}
	for _, p := range found {
		mine := p.OrganizationID == "" || p.OrganizationID == actor.OrganizationID
		out.Paused = out.Paused || mine
		if mine || actor.Role == ledger.Operator {
			out.Pauses = append(out.Pauses, encodePause(actor, p))
		}
	}
	return out
}

// encodePause leaves out who of the operators paused the installation.
func encodePause(actor ledger.Actor, p ledger.Pause) contract.PrewarmPause {
	out := contract.PrewarmPause{OrganizationID: p.OrganizationID, Installation: p.OrganizationID == "",
		Reason:   p.Reason,
		PausedAt: p.At.UTC(), Until: p.Until.UTC()}
	if !out.Installation || actor.Role == ledger.Operator {
		out.PausedBy = p.By
	}
	return out
}

func pausePrewarm(a *API) operation.Change[contract.PrewarmPauseCreate, []ledger.Pause, contract.Prewarm] {
	return operation.Change[contract.PrewarmPauseCreate, []ledger.Pause, contract.Prewarm]{
		Operation: operation.Operation{ID: "pausePrewarm", Method: http.MethodPost, Path: "/prewarm/pause",
			Tag: "capacity", Policy: auth.Admin, Summary: "Pause speculative pre-warming"},
		Check: func(ctx context.Context, v operation.Viewer, b *contract.PrewarmPauseCreate) (err error) {
			if b.OrganizationID, err = pauseSubject(ctx, a, v.Actor, b.OrganizationID, b.Installation); err != nil {
				return err
			}
			return notTooFar(v.Now, "until", b.Until)
		},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
			b contract.PrewarmPauseCreate) ([]ledger.Pause, error) {
			return l.PausePrewarming(ctx, actor, b.OrganizationID, b.Reason, truncateTime(b.Until))
		},
		Encode: encodePausesSeen,
	}
}

func resumePrewarm(a *API) operation.Change[contract.PrewarmResume, []ledger.Pause, contract.Prewarm] {
	return operation.Change[contract.PrewarmResume, []ledger.Pause, contract.Prewarm]{
		Operation: operation.Operation{ID: "resumePrewarm", Method: http.MethodPost, Path: "/prewarm/resume",
			Tag: "capacity", Policy: auth.Admin, Summary: "Resume speculative pre-warming"},
		Check: func(ctx context.Context, v operation.Viewer, b *contract.PrewarmResume) (err error) {
			b.OrganizationID, err = pauseSubject(ctx, a, v.Actor, b.OrganizationID, b.Installation)
			return err
		},
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
			b contract.PrewarmResume) ([]ledger.Pause, error) {
			return l.ResumePrewarming(ctx, actor, b.OrganizationID)
		},
		Encode: encodePausesSeen,
	}
}

func encodePausesSeen(v operation.Viewer, found []ledger.Pause) contract.Prewarm {
	return encodePauses(v.Actor, found)
}

// pauseSubject is the organization that a pause is about; empty is the installation.
func pauseSubject(ctx context.Context, a *API, actor ledger.Actor, named string, installation bool) (string, error) {
	who, err := a.resolveField(ctx, ledger.NounOrganization, "organization_id", named)
	if err != nil {
		return "", err
	}
	switch who = cmp.Or(who, actor.OrganizationID); {
	case installation && named != "":
		return "", problem.Invalid("organization_id", "must be left out with installation", "")
	case installation:
		return "", nil
	case who == "":
		return "", problem.Invalid("organization_id", "must be given: this key belongs to no organization", "")
	default:
		return who, nil
	}
}
