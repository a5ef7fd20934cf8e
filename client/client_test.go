package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

func newServer(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", "the-key", s.Client())
	require.NoError(t, err)
	return c
}

func writeAnswer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func TestRequestsCarryWhatTheServerNeeds(t *testing.T) {
	t.Parallel()
	var got []*http.Request
	c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		writeAnswer(w, http.StatusCreated, contract.Allocation{ID: "alc_1"})
	})
	in := contract.AllocationCreate{GPUs: 2, Model: "a100"}
	a, err := c.Allocate(t.Context(), in, client.Options{DryRun: true, Wait: 30 * time.Second})
	require.NoError(t, err)
	require.Equal(t, "alc_1", a.ID)
	_, err = c.Allocate(client.WithIdempotencyKey(t.Context(), "mine"), in, client.Options{})
	require.NoError(t, err)
	_, err = c.Allocation(t.Context(), "../pools/x")
	require.NoError(t, err)

	require.Equal(t, "/v1/allocations?dry_run=true", got[0].URL.String())
	require.Equal(t, "Bearer the-key", got[0].Header.Get("Authorization"))
	require.Equal(t, "wait=30", got[0].Header.Get("Prefer"))
	require.NotEmpty(t, got[0].Header.Get(contract.HeaderIdempotencyKey))
	require.Equal(t, "mine", got[1].Header.Get(contract.HeaderIdempotencyKey))
	require.Equal(t, "/v1/allocations/..%2Fpools%2Fx", got[2].URL.EscapedPath())
	require.Empty(t, got[2].Header.Get(contract.HeaderIdempotencyKey), "reading has no effect to repeat")
}

func TestProblemsAreErrors(t *testing.T) {
	t.Parallel()
	c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/whoami" {
			writeAnswer(w, http.StatusForbidden, contract.NewProblem(contract.CodeQuotaExceeded, "too many"))
			return
		}
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	})
	var e *client.Error
	_, err := c.Whoami(t.Context())
	require.True(t, errors.As(err, &e))
	require.Equal(t, contract.CodeQuotaExceeded, e.Problem.Code)
	require.ErrorContains(t, err, "too many")

	_, err = c.Version(t.Context())
	require.True(t, errors.As(err, &e))
	require.Equal(t, 502, e.Problem.Status)
	require.Empty(t, e.Problem.Code)
	require.True(t, e.Problem.Retryable)
}

// A redirect is no empty answer: it is told, without what its address may have of secrets.
func TestRedirectsAreErrors(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/v1/pools?token=secret")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(s.URL, "the-key", httpx.NewClient(httpx.Config{}))
	require.NoError(t, err)
	pools, err := client.All(c.Pools(t.Context(), client.Filter{}))
	require.Empty(t, pools)
	require.ErrorContains(t, err, "307 and points to https://elsewhere.example,")
	require.NotContains(t, err.Error(), "secret")
	var e *client.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, http.StatusTemporaryRedirect, e.Problem.Status)
}

func TestListsGoThroughAllPages(t *testing.T) {
	t.Parallel()
	c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("cursor") {
		case "":
			writeAnswer(w, 200, contract.List[contract.Pool]{Items: []contract.Pool{{ID: "1"}, {ID: "2"}},
				NextCursor: "two"})
		case "two":
			writeAnswer(w, 200, contract.List[contract.Pool]{Items: []contract.Pool{{ID: "3"}}, NextCursor: "three"})
		default:
			writeAnswer(w, 400, contract.NewProblem(contract.CodeInvalidCursor, ""))
		}
	})
	all, err := client.All(c.Pools(t.Context(), client.Filter{Pool: "x", State: []string{"a", "b"}, All: true,
		PageSize: 2}))
	require.Len(t, all, 3)
	var e *client.Error
	require.True(t, errors.As(err, &e))
	for p, err := range c.Pools(t.Context(), client.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, "1", p.ID)
		break
	}
}

func TestEventsResumeWhereTheyWereLeft(t *testing.T) {
	t.Parallel()
	var after []string
	c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		after = append(after, r.Header.Get("Last-Event-Id"))
		n := len(after)
		if n > 2 {
			writeAnswer(w, 503, contract.NewProblem(contract.CodeUnavailable, ""))
			return
		}
		_, _ = fmt.Fprintf(w, ": hello\n\nid: %d\nevent: node.ready\ndata: {\"seq\":%d}\n\n", n*10, n*10)
	})
	var seen []int64
	var last error
	for e, err := range c.Events(t.Context(), 5) {
		if err != nil {
			last = err
			continue
		}
		seen = append(seen, e.Seq)
	}
	require.Equal(t, []int64{10, 20}, seen)
	require.Equal(t, []string{"5", "10", "20"}, after)
	var e *client.Error
	require.True(t, errors.As(last, &e))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8787", "ftp://host", "http://", "://"} {
		_, err := client.New(bad, "", http.DefaultClient)
		require.Error(t, err, bad)
	}
	_, err := client.New("http://host", "", nil)
	require.Error(t, err)
}

// A path with nothing where an id belongs is that of another route, such as the list of all events.
func TestAnEmptyIDIsNotSent(t *testing.T) {
	t.Parallel()
	c := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	_, err := c.Node(t.Context(), "")
	require.ErrorContains(t, err, "an id or a name is empty: nodes/")
	_, err = c.CancelJob(t.Context(), "")
	require.ErrorContains(t, err, "jobs//cancel")
}
