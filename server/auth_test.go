package server_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
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
	swapped := good[:len("fw_test_0123456789_")] + secret.Reveal()[len("fw_test_0123456789_"):]
	for name, text := range map[string]string{
		"typing error": string(typo), "unknown": secret.Reveal(), "another's secret": swapped, "no key": "hello",
		"cut":   good[:40],
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
	require.Equal(t, 200, w.send("", http.MethodGet, "/v1/whoami", "", "Authorization", "bearer "+good).Code,
		"the scheme has no case")
	require.NotContains(t, w.log.String(), good)
	require.NotContains(t, w.log.String(), good[20:60], "no part of a secret is logged")
}

func TestKeysEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := w.keepKey("short", `{"name":"short","kind":"person","role":"viewer","expires_in_seconds":60}`)
	gone := w.createKey("gone", "viewer")
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
	k := w.createKey("alice", "viewer")
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
	w.keepKey("ada", `{"name":"ada","kind":"person","role":"admin","user_id":"`+u.ID+`"}`)
	require.Equal(t, 200, w.send("ada", http.MethodGet, "/v1/keys", "").Code)
	u = ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, `{"role":"viewer"}`, "If-Match", `"1"`)
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, "viewer", ask[contract.Whoami](w, "ada", http.MethodGet, "/v1/whoami", "").Role)
	require.Equal(t, 403, w.send("ada", http.MethodGet, "/v1/keys", "").Code)
	ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, `{"active":false}`, "If-Match", `"2"`)
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, 401, w.send("ada", http.MethodGet, "/v1/whoami", "").Code)
}

// sendFrom sends a request with a key from an address.
func (w *world) sendFrom(address, key, method, path string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r, out := newRequest(method, path, "")
	r.Host, r.RemoteAddr = "localhost", address+":4711"
	r.Header.Set("Authorization", "Bearer "+w.keys[key])
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w.handler.ServeHTTP(out, r)
	return out
}

// mintStrangerKey makes a key that is good in form and stored nowhere.
func (w *world) mintStrangerKey(name string) {
	w.t.Helper()
	_, secret, err := w.minter.Mint(keyOf(name))
	require.NoError(w.t, err)
	w.keys[name] = secret.Reveal()
}

// otherSecret is a key with the id of another, a wrong secret and a right
// checksum.
func (w *world) otherSecret(name string) string {
	w.t.Helper()
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := w.keys[name][:len(w.keys[name])-len("_checks")]
	last := strings.IndexByte(alphabet, body[len(body)-1])
	body = body[:len(body)-1] + string(alphabet[(last+1)%len(alphabet)])
	sum, digits := crc32.ChecksumIEEE([]byte(body)), []byte("000000")
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = alphabet[sum%62]
		sum /= 62
	}
	return body + "_" + string(digits)
}

// What wrong keys use up is theirs alone: no right key waits for it, wherever it
// comes from and whether or not it was seen before.
func TestWrongKeysAreLimitedByKeyAndAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.Failures = auth.Rate{PerSecond: 0.2, Burst: 3}
	})
	w.createKey("never seen", "viewer")
	w.keys["nonsense"] = "fw_test_nonsense"
	w.mintStrangerKey("bad")
	w.mintStrangerKey("other")
	w.keys["same id"] = w.otherSecret("never seen")
	get := func(address, key string, headers ...string) int {
		return w.sendFrom(address, key, http.MethodGet, "/v1/whoami", headers...).Code
	}
	for _, bad := range []string{"nonsense", "bad"} {
		for range 3 {
			require.Equal(t, 401, get("192.0.2.1", bad))
		}
		p := w.refuse(bad, http.MethodGet, "/v1/whoami", "")
		require.Equal(t, contract.CodeRateLimited, p.Code, "the address of httptest is 192.0.2.1")
		require.Equal(t, 5, p.RetryAfter)
		require.Equal(t, 401, get("192.0.2.2", bad), "another address")
	}
	require.Equal(t, 429, get("192.0.2.1", "bad", "X-Forwarded-For", "8.8.8.8"), "nobody is believed about addresses")
	require.Equal(t, 401, get("192.0.2.1", "other"), "another key")
	for range 10 {
		get("192.0.2.1", "same id")
	}
	require.Equal(t, 200, get("192.0.2.1", "root"))
	require.Equal(t, 200, get("192.0.2.1", "never seen"))
	w.clock.Advance(5 * time.Second)
	require.Equal(t, 401, get("192.0.2.1", "bad"))
}

// An IPv6 client has 2^64 addresses and is one.
func TestAddressesOfANetworkAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Limits.Failures = auth.Rate{PerSecond: 0.2, Burst: 1} })
	w.mintStrangerKey("bad")
	require.Equal(t, 401, w.sendFrom("[2001:db8::1]", "bad", http.MethodGet, "/v1/whoami").Code)
	require.Equal(t, 429, w.sendFrom("[2001:db8::ffff:2]", "bad", http.MethodGet, "/v1/whoami").Code)
	require.Equal(t, 401, w.sendFrom("[2001:db8:0:1::1]", "bad", http.MethodGet, "/v1/whoami").Code)
}

// While others of its address try as many keys as they can, a key that this
// process never saw is answered, after those that came before it.
func TestAFloodOfWrongKeysStarvesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const good, strangers = 20, 16
	for i := range good {
		w.createKey(fmt.Sprint("good", i), "viewer")
	}
	for i := range strangers {
		w.mintStrangerKey(fmt.Sprint("bad", i))
	}
	stop, wait := make(chan struct{}), sync.WaitGroup{}
	for i := range strangers {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.sendFrom("192.0.2.1", fmt.Sprint("bad", i), http.MethodGet, "/v1/whoami")
				}
			}
		})
	}
	for i := range good {
		require.Equal(t, 200, w.sendFrom("192.0.2.1", fmt.Sprint("good", i), http.MethodGet, "/v1/whoami").Code)
	}
	close(stop)
	wait.Wait()
}

// A key that somebody else tries with a wrong secret was not used.
func TestAWrongSecretIsNoUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.createKey("alice", "viewer")
	w.keys["bad"] = w.otherSecret("alice")
	require.Equal(t, 401, w.send("bad", http.MethodGet, "/v1/whoami", "").Code)
	used := func() bool {
		for _, one := range ask[contract.List[contract.Key]](w, "root", http.MethodGet, "/v1/keys", "").Items {
			if one.ID == k.ID {
				return !one.LastUsedAt.IsZero()
			}
		}
		return false
	}
	require.False(t, used())
	require.Equal(t, 200, w.send("alice", http.MethodGet, "/v1/whoami", "").Code)
	require.True(t, used())
}

// Failed sign-ins are told to operators: a row a minute for each key and
// address, with a number, and never the key.
func TestFailedSignInsAreInTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
	w.createTenant("other")
	w.mintStrangerKey("bad")
	prefix := strings.Join(strings.Split(w.keys["bad"], "_")[:3], "_")
	for range 7 {
		w.sendFrom("192.0.2.7", "bad", http.MethodGet, "/v1/whoami")
	}
	w.browsePage(http.MethodPost, "/login", url.Values{"key": {w.keys["bad"]}}.Encode(), nil)
	w.browsePage(http.MethodGet, "/login?t=no", "", nil)
	require.NoError(t, w.server.Step(t.Context()))
	failed := func(key string) []contract.Event {
		return ask[contract.EventList](w, key, http.MethodGet, "/v1/events?type=login.failed&limit=500", "").Items
	}
	rows := failed("root")
	require.Len(t, rows, 3)
	require.Equal(t, prefix, rows[0].Subject)
	require.Equal(t, "api", rows[0].Reason)
	require.Equal(t, "7 from 192.0.2.7 since 08:00:00", rows[0].Message)
	require.ElementsMatch(t, []string{"page " + prefix, "link 192.0.2.1"},
		[]string{rows[1].Reason + " " + rows[1].Subject, rows[2].Reason + " " + rows[2].Subject})
	require.Empty(t, failed("other"))
	text, err := json.Marshal(rows)
	require.NoError(t, err)
	require.NotContains(t, string(text), w.keys["bad"][len(prefix):len(prefix)+10])
}

// However many keys an attacker invents, the journal grows by a few rows a
// minute, and none is forgotten in the sums.
func TestFailedSignInsDoNotFillTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := 0
	for range 30 { // minutes
		for i := range 50 {
			w.keys["bad"] = "nonsense"
			w.sendFrom(fmt.Sprintf("198.51.100.%d", i), "bad", http.MethodGet, "/v1/whoami")
			sent++
		}
		require.NoError(t, w.server.Step(t.Context()))
		w.clock.Advance(time.Minute)
	}
	rows, told := ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?type=login.failed&limit=500",
		"").Items, 0
	require.Less(t, len(rows), 60+30+30+1, "a burst, and then one row a minute and the sum of the rest")
	for _, row := range rows {
		n, _, _ := strings.Cut(row.Message, " ")
		count, err := strconv.Atoi(n)
		require.NoError(t, err)
		told += count
	}
	require.Equal(t, sent, told)
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

// Who makes more keys may not write more; reads and other organizations are not
// in the way.
func TestWritesAreLimitedByOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.OrganizationWrites = auth.Rate{PerSecond: 1, Burst: 5}
	})
	w.createKey("a", "admin")
	w.createKey("b", "admin")
	w.createTenant("beta") // two writes of the first organization, of five
	write := func(key string) int { return w.send(key, http.MethodPost, "/v1/prewarm/resume", `{}`).Code }
	require.Equal(t, []int{200, 429, 429, 200}, []int{write("a"), write("b"), write("a"), write("beta")})
	p := w.refuse("b", http.MethodPost, "/v1/prewarm/resume", `{}`)
	require.Equal(t, contract.CodeRateLimited, p.Code)
	require.Contains(t, p.Detail, "organization")
	require.Equal(t, 1, p.RetryAfter)
	require.Equal(t, 200, w.send("b", http.MethodGet, "/v1/whoami", "").Code)
	w.clock.Advance(time.Second)
	require.Equal(t, []int{200, 429}, []int{write("b"), write("a")})
}

// What an admin does to a person shows at once where it was done.
func TestAShutOutPersonIsOutAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.org","role":"admin"}`)
	w.keepKey("ada", `{"name":"ada","kind":"person","role":"admin","user_id":"`+u.ID+`"}`)
	made := ask[contract.KeyCreated](w, "ada", http.MethodPost, "/v1/keys",
		`{"name":"child","kind":"person","role":"admin"}`)
	w.keys["child"] = made.Secret
	codes := func() []int {
		return []int{w.send("ada", http.MethodGet, "/v1/users", "").Code,
			w.send("child", http.MethodGet, "/v1/users", "").Code}
	}
	change := func(body, version string) {
		ask[contract.User](w, "root", http.MethodPatch, "/v1/users/"+u.ID, body, "If-Match", version)
	}
	require.Equal(t, []int{200, 200}, codes())
	change(`{"role":"viewer"}`, `"1"`)
	require.Equal(t, []int{403, 403}, codes(), "demoted")
	change(`{"role":"admin"}`, `"2"`)
	require.Equal(t, []int{200, 200}, codes())
	change(`{"active":false}`, `"3"`)
	require.Equal(t, []int{401, 401}, codes(), "shut out")
	change(`{"active":true}`, `"4"`)
	require.Equal(t, []int{200, 200}, codes())
	ask[contract.User](w, "root", http.MethodPut, "/v1/users/"+u.ID+"/caps", `{"caps":`+agentCaps+`}`, "If-Match",
		`"5"`)
	w.createPool()
	require.Equal(t, contract.CodeUserCapExceeded,
		w.refuse("ada", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":5}`, "Idempotency-Key", "k").Code,
		"capped")
}

func TestRequestsAreLimitedByKeyAndKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.Reads = auth.Rate{PerSecond: 1, Burst: 2}
		c.Limits.Agents = auth.Rate{PerSecond: 1, Burst: 1}
	})
	w.createKey("alice", "member")
	w.createAgentKey("bot")
	get := func(key string) int { return w.send(key, http.MethodGet, "/v1/whoami", "").Code }
	require.Equal(t, []int{200, 200, 429}, []int{get("alice"), get("alice"), get("alice")})
	require.Equal(t, []int{200, 429}, []int{get("bot"), get("bot")})
	require.Equal(t, 200, get("root"))
	require.Equal(t, 422, w.send("alice", http.MethodPost, "/v1/allocations", `{"gpus":1}`, "Idempotency-Key",
		"k").Code, "writes have their own bucket")
	w.clock.Advance(time.Second)
	require.Equal(t, 200, get("alice"))
	require.NotContains(t, strings.ToLower(w.log.String()), "bearer")
}
