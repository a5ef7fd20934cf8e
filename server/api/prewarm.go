package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) registerPrewarm() {
	registerOperation(a, operation{http.MethodGet, "/prewarm", "getPrewarm", "capacity", "Whether guesses are warmed", 0},
		a.getPrewarm)
	registerOperation(a, operation{http.MethodPost, "/prewarm/pause", "pausePrewarm", "capacity",
		"Warm nothing on a guess, for a while", 0}, a.pausePrewarm)
	registerOperation(a, operation{http.MethodPost, "/prewarm/resume", "resumePrewarm", "capacity", "Warm guesses again", 0},
		a.resumePrewarm)
}

func (a *API) getPrewarm(ctx context.Context, _ *struct{}) (*One[contract.Prewarm], error) {
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

func (a *API) pausePrewarm(ctx context.Context, in *struct {
	Idempotency
	Body contract.PrewarmPauseCreate
},
) (*Created[contract.Prewarm], error) {
	actor, b := auth.From(ctx), in.Body
	who, err := a.pauseSubject(ctx, actor, b.OrganizationID, b.Installation)
	if err != nil {
		return nil, err
	}
	if err := a.notTooFar("until", b.Until); err != nil {
		return nil, err
	}
	return runOnce(ctx, a, "POST /v1/prewarm/pause", in.Idempotency, b,
		func(ctx context.Context, a *API) (int, contract.Prewarm, error) {
			all, err := a.Ledger.PausePrewarming(ctx, actor, who, b.Reason, truncateTime(b.Until))
			return http.StatusOK, encodePauses(actor, all), err
		})
}

func (a *API) resumePrewarm(ctx context.Context, in *struct {
	Idempotency
	Body contract.PrewarmResume
},
) (*Created[contract.Prewarm], error) {
	actor, b := auth.From(ctx), in.Body
	who, err := a.pauseSubject(ctx, actor, b.OrganizationID, b.Installation)
	if err != nil {
		return nil, err
	}
	return runOnce(ctx, a, "POST /v1/prewarm/resume", in.Idempotency, b,
		func(ctx context.Context, a *API) (int, contract.Prewarm, error) {
			left, err := a.Ledger.ResumePrewarming(ctx, actor, who)
			return http.StatusOK, encodePauses(actor, left), err
		})
}

// pauseSubject is the organization that a pause is about; empty is the installation.
func (a *API) pauseSubject(ctx context.Context, actor ledger.Actor, named string, installation bool) (string, error) {
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
