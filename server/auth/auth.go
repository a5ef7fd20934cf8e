// Package auth proves who sends a request, and says what each route demands of
// them.
//
// A request carries an API key as "Authorization: Bearer fw_…". Its checksum is
// checked before anything is looked up, so that typing errors and random text
// cost nothing; its secret is compared by keyed hash in constant time. A valid
// key is remembered for at most CacheFor, that of a daemon for NodeCacheFor, which
// is therefore how long a revoked key may still work. Nothing that others send locks out a valid key: failures
// are counted, and answered, by key and address.
package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/problem"
)

// CacheFor is how long a good key is remembered.
const CacheFor = 5 * time.Second

// maxCached bounds the memory that good keys take.
const maxCached = 10_000

// Authenticator proves keys. It is safe for concurrent use.
type Authenticator struct {
	ledger  *verbs.Ledger
	clock   clock.Clock
	peppers []keys.Pepper

	lookups lookupQueues

	mu    sync.Mutex
	known map[string]*remembered
}

type remembered struct {
	ledger.Credential
	key   ledger.Key // the first of the credential
	actor ledger.Actor
	until time.Time

	// guarded by the authenticator's lock
	used   time.Time // the last use that was noted
	proved bool      // the key was sent, and its secret was the right one
	proof  [sha256.Size]byte
}

// holder is who holds the key. Each gets bounds of its own, as verbs work with them.
func (r *remembered) holder() ledger.Actor {
	actor := r.actor
	actor.Makers = slices.Clone(actor.Makers)
	return actor
}

// New returns an authenticator that accepts secrets hashed under any of the
// peppers.
func New(l *verbs.Ledger, c clock.Clock, peppers []keys.Pepper) *Authenticator {
	return &Authenticator{ledger: l, clock: c, peppers: peppers,
		lookups: lookupQueues{open: map[netip.Prefix]*lookupQueue{}}, known: map[string]*remembered{}}
}

// WrongKeyError is the error of a key that does not open. It says so to its
// sender as the problem that it wraps.
type WrongKeyError struct {
	Prefix  string // of the key, without its secret; empty for what is no key at all
	problem *problem.Problem
}

// Error says what is wrong with the key.
func (e *WrongKeyError) Error() string { return e.problem.Error() }

// Unwrap returns the problem for the sender.
func (e *WrongKeyError) Unwrap() error { return e.problem }

// Request returns who sends a request from an address. The error is a problem,
// which a *WrongKeyError wraps when there was a key, except when the store
// failed.
func (a *Authenticator) Request(r *http.Request, from netip.Addr) (ledger.Actor, error) {
	text, ok := sentKey(r)
	if !ok {
		return ledger.Actor{}, unauthenticatedProblem("This route needs an API key.")
	}
	return a.Key(r.Context(), text, from)
}

// sentKey is what a request carries as its key.
func sentKey(r *http.Request) (text string, ok bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", false
	}
	return strings.TrimSpace(text), true
}

// Key returns who holds an API key that was sent from an address. The errors are
// those of Request.
func (a *Authenticator) Key(ctx context.Context, text string, from netip.Addr) (ledger.Actor, error) {
	key, err := keys.Parse(text)
	if err != nil {
		return ledger.Actor{}, &WrongKeyError{problem: unauthenticatedProblem(err.Error())}
	}
	found, err := a.findKey(ctx, key.ID, httpx.Network(from), a.lookUpFor(key.Env))
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Actor{}, unknownKey(text, key)
	}
	if err != nil {
		return ledger.Actor{}, fmt.Errorf("looking up key %s: %w", key.ID, err)
	}
	for _, p := range a.peppers {
		if p.Verify(key.Secret, string(found.key.Hash)) {
			a.rememberProof(key.ID, found, text)
			return found.holder(), a.touchKey(ctx, found)
		}
	}
	return ledger.Actor{}, unknownKey(text, key)
}

// ByID returns the actor of a key that was proved before, such as a session's,
// or ledger.ErrNotFound when it may no longer be used.
func (a *Authenticator) ByID(ctx context.Context, keyID string) (ledger.Actor, error) {
	actor, _, err := a.Watch(ctx, keyID)
	return actor, err
}

// Watch is ByID for who goes on using the key: it also returns for how long the
// answer holds, at most CacheFor after the store was asked.
func (a *Authenticator) Watch(ctx context.Context, keyID string) (ledger.Actor, time.Duration, error) {
	found, err := a.findKey(ctx, keyID, netip.Prefix{}, a.lookUp)
	if err != nil {
		return ledger.Actor{}, 0, err
	}
	return found.holder(), found.until.Sub(a.clock.Now()), a.touchKey(ctx, found)
}

// findKey looks up a key. One that was found before is looked up at once when it
// has to be again; others wait in the queue of the network that they come from,
// so that who tries many keeps only itself waiting.
func (a *Authenticator) findKey(ctx context.Context, id string, from netip.Prefix, lookUp lookUp) (*remembered, error) {
	a.mu.Lock()
	found, ok := a.known[id]
	a.mu.Unlock()
	if ok && a.clock.Now().Before(found.until) {
		return found, nil
	}
	if !ok {
		leave, err := a.lookups.waitTurn(ctx, from)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return a.learn(ctx, id, lookUp)
}

// lookUp asks the store for a key.
type lookUp func(ctx context.Context, id string, now time.Time) (*remembered, error)

// lookUpFor is how keys of an environment are looked up: those of nodes are apart from
// those of people and agents.
func (a *Authenticator) lookUpFor(environment string) lookUp {
	if environment == nodeEnvironment {
		return a.lookUpNode
	}
	return a.lookUp
}

func (a *Authenticator) lookUp(ctx context.Context, id string, now time.Time) (*remembered, error) {
	credential, err := a.ledger.Authenticate(ctx, id)
	if err != nil {
		return nil, err
	}
	key := credential[0].Key
	found := &remembered{Credential: credential, key: key, actor: credential.Actor(), used: key.LastUsedAt,
		until: now.Add(CacheFor)}
	if end := credential.ExpiresAt(); !end.IsZero() && end.Before(found.until) {
		found.until = end
	}
	return found, nil
}

// learn looks a key up and remembers what is found for CacheFor at most.
func (a *Authenticator) learn(ctx context.Context, id string, lookUp lookUp) (*remembered, error) {
	found, err := lookUp(ctx, id, a.clock.Now())
	if err != nil {
		a.mu.Lock()
		delete(a.known, id)
		a.mu.Unlock()
		return nil, err
	}
	a.mu.Lock()
	if len(a.known) >= maxCached {
		clear(a.known)
	}
	a.known[id] = found
	a.mu.Unlock()
	return found, nil
}

// touchEvery keeps reads from taking the store's write lock: last use is only
// kept to the minute.
const touchEvery = time.Minute

// touchKey notes the use of a key, whose secret was proved, once a minute.
func (a *Authenticator) touchKey(ctx context.Context, found *remembered) error {
	now, id := a.clock.Now(), found.key.ID
	a.mu.Lock()
	if newer, ok := a.known[id]; ok {
		found = newer
	}
	due := now.Sub(found.used) >= touchEvery
	if due {
		found.used = now
	}
	a.mu.Unlock()
	if !due {
		return nil
	}
	if err := a.ledger.TouchKey(ctx, id); err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("noting the use of key %s: %w", id, err)
	}
	return nil
}

// Forget drops what is remembered of a key, and of those that rest on it, so that
// its end shows at once in this process.
func (a *Authenticator) Forget(keyID string) {
	a.forgetMatching(func(r *remembered) bool { return r.RestsOn(keyID) })
}

// ForgetPerson drops what is remembered of a person's keys, and of those that rest
// on them, so that a change of the person shows at once in this process.
func (a *Authenticator) ForgetPerson(userID string) {
	a.forgetMatching(func(r *remembered) bool { return r.ActsFor(userID) })
}

func (a *Authenticator) forgetMatching(which func(*remembered) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, known := range a.known {
		if which(known) {
			delete(a.known, id)
		}
	}
}

func unknownKey(text string, k keys.Key) error {
	before, _, _ := strings.Cut(text, "_"+k.ID+"_")
	return &WrongKeyError{Prefix: before + "_" + k.ID,
		problem: unauthenticatedProblem("The API key is unknown, revoked or expired.")}
}

func unauthenticatedProblem(detail string) *problem.Problem {
	return problem.New(contract.CodeUnauthenticated, detail).
		Request("Send the header Authorization: Bearer <API key>")
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
