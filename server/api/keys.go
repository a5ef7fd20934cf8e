package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

var createKeyOperation = operation.Operation{ID: "createKey", Method: http.MethodPost, Path: "/keys", Tag: "identity",
	Status: http.StatusCreated, Policy: auth.Admin, Problems: []int{http.StatusConflict},
	Summary: "Create an API key; its secret is shown once"}

func keyEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, createKeyOperation, createKey),
		serve(a, operation.Operation{ID: "listKeys", Method: http.MethodGet, Path: "/keys", Tag: "identity",
			Policy: auth.Admin, Summary: "List keys without their secrets"}, listKeys),
		serve(a, operation.Operation{ID: "revokeKey", Method: http.MethodDelete, Path: "/keys/{id}", Tag: "identity",
			Policy: auth.Admin, Summary: "Revoke a key, and every key it created, everywhere within five seconds"},
			revokeKey),
		serve(a, operation.Operation{ID: "adoptKey", Method: http.MethodPost, Path: "/keys/{id}/adopt",
			Tag: "identity", Policy: auth.Operator,
			Summary: "Make a key independent of the key that created it"}, adoptKey),
	}
}

func createKey(ctx context.Context, a *API, in *create[contract.KeyCreate]) (*Created[contract.KeyCreated], error) {
	actor, b := auth.From(ctx), in.Body
	if err := checkCaps(b); err != nil {
		return nil, err
	}
	owner, err := a.resolveOwner(ctx, actor, b.OrganizationID)
	if err != nil {
		return nil, err
	}
	userID, err := a.resolveField(ctx, ledger.NounUser, "user_id", b.UserID)
	if err != nil {
		return nil, err
	}
	k := ledger.Key{OrganizationID: owner, UserID: userID, Name: b.Name,
		Kind: ledger.KeyKind(b.Kind), Role: ledger.Role(b.Role), Caps: decodeCaps(b.Caps)}
	if k.ExpiresAt, err = keyEnd(a, actor, b); err != nil {
		return nil, err
	}
	k, secret, err := a.Minter.Mint(k)
	if err != nil {
		return nil, err
	}
	if k, err = createKeyOnce(ctx, a, in, k); err != nil {
		return nil, err
	}
	return &Created[contract.KeyCreated]{Status: http.StatusCreated, Location: "/v1/keys/" + k.ID,
		Body: contract.KeyCreated{Key: encodeKey(k), Secret: secret.Reveal()}}, nil
}

// createKeyOnce makes one key for each idempotency key. A repeat is refused and names the key that was made: it could
// only be answered from a stored secret.
func createKeyOnce(ctx context.Context, a *API, in *create[contract.KeyCreate], k ledger.Key) (ledger.Key, error) {
	actor := auth.From(ctx)
	if in.Key == "" {
		return a.Ledger.CreateKey(ctx, actor, k)
	}
	sent, err := operation.EncodeJSON(&in.Body, true)
	if err != nil {
		return k, fmt.Errorf("encoding the request: %w", err)
	}
	sum := sha256.Sum256(sent)
	once := ledger.Once{Route: createKeyOperation.Template(), Key: in.Key, Hash: sum[:]}
	_, madeID, replayed, err := a.Ledger.Once(ctx, actor, once,
		func(ctx context.Context, l *verbs.Ledger) (status int, answer []byte, err error) {
			k, err = l.CreateKey(ctx, actor, k)
			return http.StatusCreated, []byte(strconv.Quote(k.ID)), err
		})
	if err != nil || !replayed {
		return k, err
	}
	id, err := strconv.Unquote(string(madeID))
	if err != nil {
		return k, fmt.Errorf("reading which key was made: %w", err)
	}
	return k, problem.New(contract.CodeStateConflict, "The first request with this idempotency key made the key "+id+
		", whose secret was shown once, in its answer.").
		Field(contract.FieldError{Pointer: contract.HeaderIdempotencyKey, Code: "used", Message: "made the key " + id}).
		Fix("If nobody has its secret, revoke it", "forewarm key revoke "+id).
		Request("Then send a new Idempotency-Key")
}

// keyEnd is when a new key expires; zero means never. What nobody said is never
// later than the end of the key that asks.
func keyEnd(a *API, actor ledger.Actor, b contract.KeyCreate) (time.Time, error) {
	now := a.Clock.Now()
	switch {
	case b.NeverExpires && b.ExpiresInSeconds > 0:
		return time.Time{}, problem.Invalid("never_expires", "must not be given with expires_in_seconds", "")
	case b.NeverExpires:
		return time.Time{}, nil
	case b.ExpiresInSeconds > 0:
		return now.Add(seconds(b.ExpiresInSeconds)), nil
	}
	end := actor.ExpiresAt
	if usual := now.Add(a.KeyLife); b.Kind == contract.KindPerson && (end.IsZero() || usual.Before(end)) {
		end = usual
	}
	return end, nil
}

func checkCaps(b contract.KeyCreate) error {
	if b.Kind != contract.KindAgent || b.Caps != nil {
		return nil
	}
	return problem.Invalid("caps", "must be given for an agent's key", "").Request("Send caps as in: " +
		`{"max_gpus":8,"max_per_day":{"amount":"50","currency":"USD"},` +
		`"max_lead_seconds":86400,"max_window_seconds":28800}`)
}

func listKeys(ctx context.Context, a *API, in *struct {
	Page
	OfOrganization
	All bool `query:"all" doc:"Include revoked and expired keys. Without it, only working keys are listed."`
},
) (out *ListOut[contract.Key], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		f := ledger.KeyFilter{ValidAt: r.Now()}
		if in.All {
			f = ledger.KeyFilter{}
		}
		out, err = readPage(in.Page, "key", func(p ledger.Page) ([]ledger.Key, error) {
			return r.Keys(s, f, p)
		}, func(k ledger.Key) string { return k.ID }, encodeKey)
		if err != nil {
			return err
		}
		return tellEnds(r, out.Body.Items)
	})
	return out, err
}

func revokeKey(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Key], error) {
	k, err := a.Ledger.RevokeKey(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	a.Auth.Forget(k.ID)
	out := &One[contract.Key]{Body: encodeKey(k)}
	if out.Body.Schedules, err = schedulesOfKey(ctx, a, k.ID); err == nil {
		out.Body.Ended, err = keysEndedWith(ctx, a, k.ID)
	}
	return out, err
}

// keysEndedWith are the keys that worked until the one ended that they rest on.
func keysEndedWith(ctx context.Context, a *API, keyID string) (list []contract.KeyEnded, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		list = nil
		made, err := r.Offspring(ledger.KeyRoot{KeyID: keyID})
		if err != nil {
			return err
		}
		live := map[string]ledger.Key{}
		for _, id := range made {
			k, err := r.Key(ledger.Scope{All: true}, id)
			if errors.Is(err, ledger.ErrNotFound) {
				continue // it is a schedule
			}
			if err != nil {
				return fmt.Errorf("reading a key that ended: %w", err)
			}
			if id != keyID && k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(r.Now())) {
				live[id] = k
			}
		}
		for _, id := range made {
			k, worked := live[id]
			for worked && k.ParentID != keyID {
				k, worked = live[k.ParentID]
			}
			if worked {
				list = append(list, contract.KeyEnded{ID: id, Name: live[id].Name})
			}
		}
		return nil
	})
	return list, err
}

// schedulesOfKey are the schedules that a key made, or one that rests on it, and that
// are neither deleted nor paused.
func schedulesOfKey(ctx context.Context, a *API, keyID string) (list []contract.KeySchedule, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		list = nil
		made, err := r.Offspring(ledger.KeyRoot{KeyID: keyID})
		if err != nil {
			return err
		}
		for _, id := range made {
			if ids.Check(ids.Schedule, id) != nil {
				continue
			}
			s, err := r.Schedule(auth.From(ctx).Scope(), id)
			if err != nil {
				return err
			}
			if s.DeletedAt.IsZero() && !s.Paused {
				list = append(list, contract.KeySchedule{ID: s.ID, Name: s.Name, MadeBy: s.MadeBy})
			}
		}
		return nil
	})
	return list, err
}

func adoptKey(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Key], error) {
	k, err := a.Ledger.AdoptKey(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	a.Auth.Forget(k.ID)
	return &One[contract.Key]{Body: encodeKey(k)}, nil
}

func encodeKey(k ledger.Key) contract.Key {
	return contract.Key{ID: k.ID, OrganizationID: k.OrganizationID, UserID: k.UserID, Name: k.Name,
		Kind: string(k.Kind),
		Role: string(k.Role), Caps: encodeCaps(k.Caps), Last4: k.Last4, CreatedBy: k.CreatedBy, ParentID: k.ParentID,
		CreatedAt: k.CreatedAt.UTC(),
		ExpiresAt: k.ExpiresAt.UTC(), RevokedAt: k.RevokedAt.UTC(), LastUsedAt: k.LastUsedAt.UTC(),
		Works: k.RevokedAt.IsZero()}
}

// forgetKeys has keys that have ended open nothing here at once, and elsewhere when
// what is remembered of them is too old.
func (a *API) forgetKeys(keyIDs []string, err error) {
	if err != nil {
		return
	}
	for _, id := range keyIDs {
		a.Auth.Forget(id)
	}
}
