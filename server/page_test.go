package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// browsePage sends what a browser sends.
func (w *world) browsePage(method, path, form string, cookies []*http.Cookie,
	headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r, out := newRequest(method, path, form)
	r.Host = "localhost"
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w.handler.ServeHTTP(out, r)
	return out
}

func TestThePageShowsTheStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.OpenPage = true })
	empty := w.browsePage(http.MethodGet, "/", "", nil).Body.String()
	for _, text := range []string{"no starts yet", "the share of starts", "There is no pool yet", "Nobody holds GPUs",
		"There is no reservation", "<code>forewarm "} {
		require.Contains(t, empty, text)
	}
	p := w.createPool()
	out := w.send("root", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":2,"name":"<script>alert(1)</script>"}`, "Idempotency-Key", "k")
	require.Equal(t, 202, out.Code, out.Body.String())
	ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	w.runDueTasks(p)
	w.clock.Advance(time.Minute)
	page := w.browsePage(http.MethodGet, "/", "", nil)
	body := page.Body.String()
	for _, text := range []string{"100.0%", "of 1 starts", "SIM", "lab", "node.ready", "allocation.active",
		"waited 5 s", "ready", "booked", "of $"} {
		require.Contains(t, body, text)
	}
	require.NotContains(t, body, "<script>alert", "names are text")
	require.NotContains(t, body, "style=", "the content policy allows none")
	require.NotContains(t, body, "onclick")
	require.Equal(t, "no-store", page.Header().Get("Cache-Control"))
	for _, file := range []string{"page.css", "page.js"} {
		require.Contains(t, body, "/assets/"+file)
		require.Equal(t, 200, w.browsePage(http.MethodGet, "/assets/"+file, "", nil).Code)
	}
	require.Equal(t, 404, w.browsePage(http.MethodGet, "/assets/..%2Fpage.go", "", nil).Code)
}

// The page names and orders what it shows as the CLI does, and says who has nothing warmed.
func TestThePageReadsLikeTheCLI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.OpenPage = true })
	w.createPool()
	for i, name := range []string{"first", "second"} {
		w.clock.Advance(time.Minute)
		ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
			fmt.Sprintf(`{"pool":"lab","gpus":1,"name":%q,`+
				`"start":"2026-03-02T1%d:00:00Z","end":"2026-03-02T1%d:30:00Z"}`, name, i, i), "Idempotency-Key", name)
	}
	body := w.browsePage(http.MethodGet, "/", "", nil).Body.String()
	require.Less(t, strings.Index(body, "<td>second"), strings.Index(body, "<td>first"), "the newest first")
	require.Contains(t, body, `<td data-is="by">root, `, "made by")
	require.Contains(t, body, "<td data-is=\"by\">root\n", "by")
	require.NotContains(t, body, "paused")
	_, err := w.ledger.PausePrewarming(t.Context(), w.actorOf("root"), "", "", time.Time{})
	require.NoError(t, err)
	require.Contains(t, w.browsePage(http.MethodGet, "/", "", nil).Body.String(), "pre-warming is paused for everybody")
}

func TestThePageCountsSharedGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.OpenPage = true })
	ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools",
		strings.Replace(poolBody, `"gpus_per_node":4`, `"gpus_per_node":8,"shares_per_gpu":4`, 1))
	require.Contains(t, w.browsePage(http.MethodGet, "/", "", nil).Body.String(), "2 × a100-80g, 4 shares each")
}

func TestTheOneTimeLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
	require.Equal(t, 403, w.browsePage(http.MethodGet, "/login?t=twice", "", nil).Code)
	in := w.browsePage(http.MethodGet, "/login?t=once", "", nil)
	require.Equal(t, 303, in.Code)
	cookies := in.Result().Cookies()
	require.Len(t, cookies, 1)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookies[0].SameSite)
	require.Equal(t, 200, w.browsePage(http.MethodGet, "/", "", cookies).Code)
	require.Equal(t, 403, w.browsePage(http.MethodGet, "/login?t=once", "", nil).Code, "once is once")
	w.clock.Advance(12 * time.Hour)
	require.Equal(t, 303, w.browsePage(http.MethodGet, "/", "", cookies).Code, "a session ends")

	late := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
	late.clock.Advance(10 * time.Minute)
	require.Equal(t, 403, late.browsePage(http.MethodGet, "/login?t=once", "", nil).Code)
}

func TestSigningInWithAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createAgentKey("bot")
	ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"name":"private","start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`,
		"Idempotency-Key", "r")
	form := func(key string) string { return url.Values{"key": {key}}.Encode() }
	require.Equal(t, 200, w.browsePage(http.MethodGet, "/login", "", nil).Code)
	require.Equal(t, 403, w.browsePage(http.MethodPost, "/login", form("nonsense"), nil).Code)
	require.Equal(t, 403, w.browsePage(http.MethodPost, "/login", form(w.keys["bot"]), nil).Code,
		"the page is for people")
	require.Equal(t, 403, w.browsePage(http.MethodPost, "/login", form(w.keys["root"]), nil, "Sec-Fetch-Site",
		"cross-site").Code)

	mine := w.browsePage(http.MethodPost, "/login", form(w.keys["root"]), nil).Result().Cookies()
	theirs := w.browsePage(http.MethodPost, "/login", form(w.keys["other"]), nil).Result().Cookies()
	require.Contains(t, w.browsePage(http.MethodGet, "/", "", mine).Body.String(), "private")
	require.NotContains(t, w.browsePage(http.MethodGet, "/", "", theirs).Body.String(), "private",
		"a session sees what its key sees")
	require.Equal(t, 401, w.browsePage(http.MethodGet, "/v1/whoami", "", mine).Code, "a cookie is no API key")

	require.Equal(t, 403, w.browsePage(http.MethodPost, "/logout", "", mine, "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 303, w.browsePage(http.MethodPost, "/logout", "", mine).Code)
	require.Equal(t, 303, w.browsePage(http.MethodGet, "/", "", mine).Code)

	id := strings.Split(w.keys["other"], "_")[2]
	ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+id, "")
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, 303, w.browsePage(http.MethodGet, "/", "", theirs).Code, "a session ends with its key")
	require.NotContains(t, w.log.String(), w.keys["root"])
}

// What anybody does without a key or a link takes nothing from who has one.
func TestStrangersLockNobodyOut(t *testing.T) {
	t.Parallel()
	few := auth.Rate{PerSecond: 0.2, Burst: 3}
	w := newWorld(t, func(c *server.Config) {
		c.SignInToken, c.Limits = obs.NewSecret("once"), unlimited
		c.Limits.Failures, c.Limits.Links = few, few
	})
	form := func(key string) string { return url.Values{"key": {key}}.Encode() }
	for i, want := range []int{403, 403, 403, 429, 429} {
		require.Equal(t, want, w.browsePage(http.MethodGet, "/login?t=x", "", nil).Code, i)
		require.Equal(t, want, w.browsePage(http.MethodPost, "/login", form("nonsense"), nil).Code, i)
	}
	require.Equal(t, "5", w.browsePage(http.MethodGet, "/login?t=x", "", nil).Header().Get("Retry-After"))
	w.keys["bad"] = "nonsense"
	require.Equal(t, 401, w.send("bad", http.MethodGet, "/v1/whoami", "").Code, "the API counts apart")
	require.Equal(t, 200, w.send("root", http.MethodGet, "/v1/whoami", "").Code)
	require.Equal(t, 303, w.browsePage(http.MethodPost, "/login", form(w.keys["root"]), nil).Code)
	require.Equal(t, 303, w.browsePage(http.MethodGet, "/login?t=once", "", nil).Code)
}

// Signing in again and again ends one's own oldest session and nobody else's,
// and cannot be done without end.
func TestSessionsOfOthersLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Limits = unlimited
		c.Limits.Logins = auth.Rate{PerSecond: 1, Burst: 30}
	})
	w.createKey("viewer", "viewer")
	in := func(key string) *httptest.ResponseRecorder {
		return w.browsePage(http.MethodPost, "/login", url.Values{"key": {w.keys[key]}}.Encode(), nil)
	}
	seen := func(cookies []*http.Cookie) int { return w.browsePage(http.MethodGet, "/", "", cookies).Code }
	operator := in("root").Result().Cookies()
	first := in("viewer").Result().Cookies()
	w.clock.Advance(time.Second)
	second := in("viewer").Result().Cookies()
	for range 18 {
		w.clock.Advance(time.Millisecond)
		require.Equal(t, 303, in("viewer").Code)
	}
	require.Equal(t, 200, seen(first), "twenty are kept")
	in("viewer")
	require.Equal(t, 303, seen(first))
	require.Equal(t, 200, seen(second))
	for range 20 {
		in("viewer")
	}
	out := in("viewer")
	require.Equal(t, 429, out.Code)
	require.Equal(t, "1", out.Header().Get("Retry-After"))
	require.Equal(t, 200, seen(operator))
	require.Equal(t, 303, in("root").Code)
}

// The keys of one organization, however many, sign out nobody of another.
func TestSessionsOfOtherOrganizationsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createTenant("other")
	in := func(key string) []*http.Cookie {
		form := url.Values{"key": {w.keys[key]}}.Encode()
		return w.browsePage(http.MethodPost, "/login", form, nil).Result().Cookies()
	}
	operator := in("root")
	first := in("other")
	w.clock.Advance(time.Second)
	for i := range 50 {
		key := fmt.Sprint("other", i)
		w.keys[key] = ask[contract.KeyCreated](w, "other", http.MethodPost, "/v1/keys",
			`{"name":"`+key+`","kind":"person","role":"viewer"}`).Secret
		for range 20 {
			in(key)
		}
	}
	require.Equal(t, 303, w.browsePage(http.MethodGet, "/", "", first).Code, "a thousand are kept")
	require.Equal(t, 200, w.browsePage(http.MethodGet, "/", "", operator).Code)
}

func TestCookiesBehindTLS(t *testing.T) {
	t.Parallel()
	proxies, err := httpx.ParseProxies([]string{"192.0.2.0/24"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change  func(*server.Config)
		headers []string
		secure  bool
	}{
		"plain":              {func(*server.Config) {}, nil, false},
		"anybody says https": {func(*server.Config) {}, []string{"X-Forwarded-Proto", "https"}, false},
		"a proxy says https": {func(c *server.Config) { c.Proxies = proxies },
			[]string{"X-Forwarded-Proto", "https"}, true},
		"by RFC 7239": {func(c *server.Config) { c.Proxies = proxies },
			[]string{"Forwarded", "for=198.51.100.1;proto=https"}, true},
		"a proxy says http": {func(c *server.Config) { c.Proxies = proxies }, []string{"X-Forwarded-Proto", "http"},
			false},
		"the public URL has it": {func(c *server.Config) { c.PublicTLS = true }, nil, true},
	} {
		w := newWorld(t, func(cfg *server.Config) { c.change(cfg); cfg.SignInToken = obs.NewSecret("once") })
		in := w.browsePage(http.MethodGet, "/login?t=once", "", nil, c.headers...)
		cookie := in.Result().Cookies()[0]
		require.Equal(t, c.secure, cookie.Secure, name)
		require.Equal(t, c.secure, strings.HasPrefix(cookie.Name, "__Host-"), name)
		require.True(t, cookie.HttpOnly && cookie.Path == "/" && cookie.Domain == "", name)
		require.Equal(t, c.secure, in.Header().Get("Strict-Transport-Security") != "", name)
		require.Equal(t, 200, w.browsePage(http.MethodGet, "/", "", []*http.Cookie{cookie}, c.headers...).Code, name)
		out := w.browsePage(http.MethodPost, "/logout", "", []*http.Cookie{cookie}, c.headers...)
		require.Equal(t, cookie.Name, out.Result().Cookies()[0].Name, name)
		require.Equal(t, 303, w.browsePage(http.MethodGet, "/", "", []*http.Cookie{cookie}, c.headers...).Code, name)
	}
}

// Text from before control characters were refused, or from a provider, shows on
// the page and does nothing.
func TestThePageEscapesControls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.OpenPage = true })
	w.createPool()
	_, err := w.ledger.Allocate(t.Context(), w.actorOf("root"),
		ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour, Name: "a\u202eb\u009b2Jc"})
	require.NoError(t, err)
	body := w.browsePage(http.MethodGet, "/", "", nil).Body.String()
	require.Contains(t, body, `a\u202eb\u009b2Jc`)
	require.NotContains(t, body, "\u202e")
}

// actorOf is who a key acts for.
func (w *world) actorOf(key string) ledger.Actor {
	w.t.Helper()
	me := ask[contract.Whoami](w, key, http.MethodGet, "/v1/whoami", "")
	return ledger.Actor{KeyID: me.KeyID, Kind: ledger.PersonKey, OrganizationID: me.OrganizationID,
		Role: ledger.Role(me.Role), Via: "api"}
}
