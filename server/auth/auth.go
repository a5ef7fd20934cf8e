// Package auth proves who sends a request, and says what each route demands of
// them.
//
// A request carries an API key as "Authorization: Bearer gpa_…". Its checksum is
// checked before anything is looked up, so that typing errors and random text
// cost nothing; its secret is compared by keyed hash in constant time. A key
// that was found good is remembered for at most CacheFor, which is therefore how
// long a revoked key may still work.
package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// CacheFor is how long a good key is remembered.
const CacheFor = 5 * time.Second

// maxCached bounds the memory that good keys take.
const maxCached = 10_000

// Authenticator proves keys. It is safe for concurrent use.
type Authenticator struct {
	ledger  *ledger.Ledger
	clock   clock.Clock
	peppers []keys.Pepper

	mu    sync.Mutex
	known map[string]remembered
}

type remembered struct {
	key   ledger.Key
	user  ledger.User
	until time.Time
}

// New returns an authenticator that accepts secrets hashed under any of the
// peppers.
func New(l *ledger.Ledger, c clock.Clock, peppers []keys.Pepper) *Authenticator {
	return &Authenticator{ledger: l, clock: c, peppers: peppers, known: map[string]remembered{}}
}

// Request returns who sends a request. The error is a problem, except when the
// store failed.
func (a *Authenticator) Request(r *http.Request) (ledger.Actor, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		return ledger.Actor{}, unauthenticated("This route needs an API key.")
	}
	return a.Key(r.Context(), strings.TrimSpace(text))
}

// Key returns who holds an API key. The errors are those of Request.
func (a *Authenticator) Key(ctx context.Context, text string) (ledger.Actor, error) {
	key, err := keys.Parse(text)
	if err != nil {
		return ledger.Actor{}, unauthenticated(err.Error())
	}
	found, err := a.find(ctx, key.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Actor{}, unknown()
	}
	if err != nil {
		return ledger.Actor{}, fmt.Errorf("looking up key %s: %w", key.ID, err)
	}
	for _, p := range a.peppers {
		if p.Verify(key.Secret, string(found.key.Hash)) {
			return actor(found), nil
		}
	}
	return ledger.Actor{}, unknown()
}

// ByID returns the actor of a key that was proved before, such as a session's,
// or ledger.ErrNotFound when it may no longer be used.
func (a *Authenticator) ByID(ctx context.Context, keyID string) (ledger.Actor, error) {
	found, err := a.find(ctx, keyID)
	if err != nil {
		return ledger.Actor{}, err
	}
	return actor(found), nil
}

func (a *Authenticator) find(ctx context.Context, id string) (remembered, error) {
	now := a.clock.Now()
	a.mu.Lock()
	found, ok := a.known[id]
	a.mu.Unlock()
	if ok && now.Before(found.until) {
		return found, nil
	}
	key, user, err := a.ledger.Authenticate(ctx, id)
	if err != nil {
		a.Forget(id)
		return remembered{}, err
	}
	found = remembered{key: key, user: user, until: now.Add(CacheFor)}
	a.mu.Lock()
	if len(a.known) >= maxCached {
		clear(a.known)
	}
	a.known[id] = found
	a.mu.Unlock()
	return found, a.touch(ctx, key, now)
}

// touchEvery keeps reads from taking the store's write lock: last use is only
// kept to the minute.
const touchEvery = time.Minute

func (a *Authenticator) touch(ctx context.Context, k ledger.Key, now time.Time) error {
	if now.Sub(k.LastUsedAt) < touchEvery {
		return nil
	}
	if err := a.ledger.TouchKey(ctx, k.ID); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("noting the use of key %s: %w", k.ID, err)
	}
	return nil
}

// Forget drops what is remembered of a key, so that its end shows at once in
// this process.
func (a *Authenticator) Forget(keyID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, keyID)
}

// actor gives a key no more than the role that its person has now.
func actor(r remembered) ledger.Actor {
	role := r.key.Role
	if r.key.UserID != "" && rank(r.user.Role) < rank(role) {
		role = r.user.Role
	}
	return ledger.Actor{
		KeyID: r.key.ID, Kind: r.key.Kind, OrganizationID: r.key.OrganizationID, UserID: r.key.UserID,
		Role: role, Caps: r.key.Caps, UserCaps: r.user.Caps, Via: "api",
	}
}

func rank(r ledger.Role) int {
	return slices.Index([]ledger.Role{ledger.Viewer, ledger.Member, ledger.Admin, ledger.Operator}, r)
}

func unknown() *problem.Problem {
	return unauthenticated("The API key is unknown, revoked or expired.")
}

func unauthenticated(detail string) *problem.Problem {
	return problem.New(contract.CodeUnauthenticated, detail).
		Fix("Send the header Authorization: Bearer <API key>", "")
}

type actorKey struct{}

// With returns a context that carries who asks.
func With(ctx context.Context, a ledger.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// From returns who asks; without one, the zero Actor, which may do nothing.
func From(ctx context.Context) ledger.Actor {
	a, _ := ctx.Value(actorKey{}).(ledger.Actor)
	return a
}
