package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

func TestKeysThatDoNotOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.keys["root"]
	other, secret, err := w.minter.Mint(keyOf("other"))
	require.NoError(t, err)
	_ = other // made, but stored nowhere
	typo := []byte(good)
	typo[20] ^= 1
	swapped := good[:len("gpa_test_0123456789_")] + secret.Reveal()[len("gpa_test_0123456789_"):]
	for name, text := range map[string]string{
		"typing error": string(typo), "unknown": secret.Reveal(), "another's secret": swapped, "no key": "hello", "cut": good[:40],
		"twice": good + good, "SQL": "' OR 1=1 --",
	} {
		w.keys["bad"] = text
		p := w.refuse("bad", http.MethodGet, "/v1/whoami", "")
		require.Equal(t, contract.CodeUnauthenticated, p.Code, name)
		require.NotContains(t, p.Detail, good)
	}
	out := w.send("", http.MethodGet, "/v1/whoami", "", "Authorization", "Basic "+good)
	require.Equal(t, 401, out.Code)
	require.Contains(t, out.Header().Get("WWW-Authenticate"), "Bearer")
	require.Equal(t, 200, w.send("", http.MethodGet, "/v1/whoami", "", "Authorization", "bearer "+good).Code, "the scheme has no case")
	require.NotContains(t, w.log.String(), good)
	require.NotContains(t, w.log.String(), good[20:60], "no part of a secret is logged")
}

func TestKeysEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := w.keep("short", `{"name":"short","kind":"person","role":"viewer","expires_in_seconds":60}`)
	gone := w.key("gone", "viewer")
	require.Equal(t, 200, w.send("short", http.MethodGet, "/v1/whoami", "").Code)
	require.Equal(t, 200, w.send("gone", http.MethodGet, "/v1/whoami", "").Code)
	ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+gone.ID, "")
	require.Equal(t, 401, w.send("gone", http.MethodGet, "/v1/whoami", "").Code)
	w.clock.Set(short.ExpiresAt.Add(auth.CacheFor))
	require.Equal(t, 401, w.send("short", http.MethodGet, "/v1/whoami", "").Code)
}

// Another server's revocation shows here within CacheFor.
func TestRevocationIsSeenWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.key("alice", "viewer")
	require.Equal(t, 200, w.send("alice", http.MethodGet, "/v1/whoami", "").Code)
	_, err := w.ledger.RevokeKey(t.Context(), rootActor(), k.ID)
	require.NoError(t, err)
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, 401, w.send("alice", http.MethodGet, "/v1/whoami", "").Code)
}

func TestAKeyIsNoStrongerThanItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.org","role":"admin"}`)
	w.keep("ada", `{"name":"ada","kind":"person","role":"admin","user_id":"`+u.ID+`"}`)
	require.Equal(t, 200, w.send("ada", http.MethodGet, "/v1/keys", "").Code)
	u = ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, `{"role":"viewer"}`, "If-Match", `"1"`)
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, "viewer", ask[contract.Whoami](w, "ada", http.MethodGet, "/v1/whoami", "").Role)
	require.Equal(t, 403, w.send("ada", http.MethodGet, "/v1/keys", "").Code)
	ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, `{"active":false}`, "If-Match", `"2"`)
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, 401, w.send("ada", http.MethodGet, "/v1/whoami", "").Code)
}

func TestWrongKeysAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.Failures = auth.Rate{PerSecond: 0.2, Burst: 3}
	})
	w.keys["bad"] = "gpa_test_nonsense"
	for range 3 {
		require.Equal(t, 401, w.send("bad", http.MethodGet, "/v1/whoami", "").Code)
	}
	p := w.refuse("bad", http.MethodGet, "/v1/whoami", "")
	require.Equal(t, contract.CodeRateLimited, p.Code)
	require.Equal(t, 5, p.RetryAfter)
	require.Equal(t, 429, w.send("root", http.MethodGet, "/v1/whoami", "").Code, "the address, whatever key it tries")
	require.Equal(t, 429, w.send("bad", http.MethodGet, "/v1/whoami", "", "X-Forwarded-For", "8.8.8.8").Code, "nobody is believed about addresses")
	w.clock.Advance(5 * time.Second)
	require.Equal(t, 200, w.send("root", http.MethodGet, "/v1/whoami", "").Code)
}

// Driven far above its rate, a limiter still passes the rate.
func TestLimiterKeepsItsRate(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(begin)
	l := auth.NewLimiter(auth.Rate{PerSecond: 10, Burst: 5}, now)
	passed := 0
	for range 60 * 1000 {
		if ok, _ := l.Allow("k"); ok {
			passed++
		}
		now.Advance(time.Millisecond)
	}
	require.InDelta(t, 60*10+5, passed, 2)
	ok, _ := l.Allow("another")
	require.True(t, ok, "keys do not share")
	none := auth.NewLimiter(auth.Rate{PerSecond: -1}, now)
	for range 1000 {
		ok, _ := none.Allow("k")
		require.True(t, ok)
	}
}

func TestRequestsAreLimitedByKeyAndKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.Reads = auth.Rate{PerSecond: 1, Burst: 2}
		c.Limits.Agents = auth.Rate{PerSecond: 1, Burst: 1}
	})
	w.key("alice", "member")
	w.agent("bot")
	get := func(key string) int { return w.send(key, http.MethodGet, "/v1/whoami", "").Code }
	require.Equal(t, []int{200, 200, 429}, []int{get("alice"), get("alice"), get("alice")})
	require.Equal(t, []int{200, 429}, []int{get("bot"), get("bot")})
	require.Equal(t, 200, get("root"))
	require.Equal(t, 422, w.send("alice", http.MethodPost, "/v1/allocations", `{"gpus":1}`, "Idempotency-Key", "k").Code, "writes have their own bucket")
	w.clock.Advance(time.Second)
	require.Equal(t, 200, get("alice"))
	require.NotContains(t, strings.ToLower(w.log.String()), "bearer")
}
