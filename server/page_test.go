package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// browse sends what a browser sends.
func (w *world) browse(method, path, form string, cookies []*http.Cookie, headers ...string) *httptest.ResponseRecorder {
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
	w.server.ServeHTTP(out, r)
	return out
}

func TestThePageShowsTheStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.OpenPage = true })
	empty := w.browse(http.MethodGet, "/", "", nil).Body.String()
	for _, text := range []string{"no starts yet", "There is no pool yet", "Nobody holds GPUs", "Nothing is promised", "<code>forewarm "} {
		require.Contains(t, empty, text)
	}
	p := w.pool()
	out := w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":2,"name":"<script>alert(1)</script>"}`, "Idempotency-Key", "k")
	require.Equal(t, 202, out.Code, out.Body.String())
	ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	w.work(p)
	w.clock.Advance(time.Minute)
	page := w.browse(http.MethodGet, "/", "", nil)
	body := page.Body.String()
	for _, text := range []string{"100.0%", "of 1 starts", "SIM", "lab", "node.ready", "allocation.active", "waited 5 s", "ready", "booked", "of $"} {
		require.Contains(t, body, text)
	}
	require.NotContains(t, body, "<script>alert", "names are text")
	require.NotContains(t, body, "style=", "the content policy allows none")
	require.NotContains(t, body, "onclick")
	require.Equal(t, "no-store", page.Header().Get("Cache-Control"))
	for _, file := range []string{"page.css", "page.js"} {
		require.Contains(t, body, "/assets/"+file)
		require.Equal(t, 200, w.browse(http.MethodGet, "/assets/"+file, "", nil).Code)
	}
	require.Equal(t, 404, w.browse(http.MethodGet, "/assets/..%2Fpage.go", "", nil).Code)
}

func TestTheOneTimeLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
	require.Equal(t, 403, w.browse(http.MethodGet, "/login?t=twice", "", nil).Code)
	in := w.browse(http.MethodGet, "/login?t=once", "", nil)
	require.Equal(t, 303, in.Code)
	cookies := in.Result().Cookies()
	require.Len(t, cookies, 1)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookies[0].SameSite)
	require.Equal(t, 200, w.browse(http.MethodGet, "/", "", cookies).Code)
	require.Equal(t, 403, w.browse(http.MethodGet, "/login?t=once", "", nil).Code, "once is once")
	w.clock.Advance(12 * time.Hour)
	require.Equal(t, 303, w.browse(http.MethodGet, "/", "", cookies).Code, "a session ends")

	late := newWorld(t, func(c *server.Config) { c.SignInToken = obs.NewSecret("once") })
	late.clock.Advance(10 * time.Minute)
	require.Equal(t, 403, late.browse(http.MethodGet, "/login?t=once", "", nil).Code)
}

func TestSigningInWithAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool()
	w.tenant("other")
	w.agent("bot")
	ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"name":"private","start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	form := func(key string) string { return url.Values{"key": {key}}.Encode() }
	require.Equal(t, 200, w.browse(http.MethodGet, "/login", "", nil).Code)
	require.Equal(t, 403, w.browse(http.MethodPost, "/login", form("nonsense"), nil).Code)
	require.Equal(t, 403, w.browse(http.MethodPost, "/login", form(w.keys["bot"]), nil).Code, "the page is for people")
	require.Equal(t, 403, w.browse(http.MethodPost, "/login", form(w.keys["root"]), nil, "Sec-Fetch-Site", "cross-site").Code)

	mine := w.browse(http.MethodPost, "/login", form(w.keys["root"]), nil).Result().Cookies()
	theirs := w.browse(http.MethodPost, "/login", form(w.keys["other"]), nil).Result().Cookies()
	require.Contains(t, w.browse(http.MethodGet, "/", "", mine).Body.String(), "private")
	require.NotContains(t, w.browse(http.MethodGet, "/", "", theirs).Body.String(), "private", "a session sees what its key sees")
	require.Equal(t, 401, w.browse(http.MethodGet, "/v1/whoami", "", mine).Code, "a cookie is no API key")

	require.Equal(t, 403, w.browse(http.MethodPost, "/logout", "", mine, "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 303, w.browse(http.MethodPost, "/logout", "", mine).Code)
	require.Equal(t, 303, w.browse(http.MethodGet, "/", "", mine).Code)

	id := strings.Split(w.keys["other"], "_")[2]
	ask[contract.Key](w, "root", http.MethodDelete, "/v1/keys/"+id, "")
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, 303, w.browse(http.MethodGet, "/", "", theirs).Code, "a session ends with its key")
	require.NotContains(t, w.log.String(), w.keys["root"])
}
