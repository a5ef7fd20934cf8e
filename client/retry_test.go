package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// reluctant answers with a status so many times before it answers well.
type reluctant struct {
	status, times int
	after         string
	seen          []string // each request's idempotency key and body
}

func (s *reluctant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.seen = append(s.seen, r.Header.Get(contract.HeaderIdempotencyKey)+" "+string(body))
	if len(s.seen) <= s.times {
		if s.after != "" {
			w.Header().Set("Retry-After", s.after)
		}
		writeAnswer(w, s.status, contract.NewProblem(contract.CodeRateLimited, ""))
		return
	}
	writeAnswer(w, http.StatusOK, contract.Allocation{ID: "alc_1"})
}

// newPatientClient is a client of s that remembers how long it waited.
func newPatientClient(t *testing.T, s *reluctant, limit time.Duration) (*client.Client, *[]time.Duration) {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	waits := &[]time.Duration{}
	c, err := client.New(listening.URL, "k", client.Patient{Next: listening.Client(), Limit: limit,
		Wait: func(ctx context.Context, d time.Duration) error { *waits = append(*waits, d); return ctx.Err() }})
	require.NoError(t, err)
	return c, waits
}

func TestPatientTriesAgainWhenTold(t *testing.T) {
	t.Parallel()
	get := func(c *client.Client) error { _, err := c.Allocation(t.Context(), "alc_1"); return err }
	post := func(c *client.Client) error {
		_, err := c.Allocate(t.Context(), contract.AllocationCreate{GPUs: 2}, client.Options{})
		return err
	}
	patch := func(c *client.Client) error {
		_, err := c.PatchPool(t.Context(), "lab", 1, contract.PoolPatch{})
		return err
	}
	mint := func(c *client.Client) error { _, err := c.CreateKey(t.Context(), contract.KeyCreate{}); return err }
	token := func(c *client.Client) error { _, err := c.IssueJoinToken(t.Context(), "nod_1", 0); return err }
	for name, x := range map[string]struct {
		server reluctant
		send   func(*client.Client) error
		sent   int
	}{
		"429 and a read":                 {reluctant{status: 429, times: 2, after: "3"}, get, 3},
		"503 and a read":                 {reluctant{status: 503, times: 1, after: "3"}, get, 2},
		"503 and a booking":              {reluctant{status: 503, times: 1, after: "3"}, post, 2},
		"503 and a change of a version":  {reluctant{status: 503, times: 1, after: "3"}, patch, 1},
		"429 and a change of a version":  {reluctant{status: 429, times: 1, after: "3"}, patch, 2},
		"503 and what makes a key":       {reluctant{status: 503, times: 1, after: "3"}, mint, 2},
		"503 and what makes a token":     {reluctant{status: 503, times: 1, after: "3"}, token, 1},
		"503 without a time":             {reluctant{status: 503, times: 1}, get, 1},
		"longer than the limit":          {reluctant{status: 429, times: 1, after: "31"}, get, 1},
		"together longer than the limit": {reluctant{status: 429, times: 9, after: "12"}, get, 3},
		"another failure":                {reluctant{status: 500, times: 1, after: "1"}, get, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := x.server
			c, waits := newPatientClient(t, &s, 30*time.Second)
			err := x.send(c)
			require.Equal(t, x.sent <= s.times, err != nil, "%v", err)
			require.Len(t, s.seen, x.sent)
			require.Len(t, *waits, x.sent-1)
			for _, again := range s.seen {
				require.Equal(t, s.seen[0], again, "the same key and body each time")
			}
		})
	}
}

func TestPatientEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := &reluctant{status: 429, times: 9, after: "3"}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.New(listening.URL, "k", client.Patient{Next: listening.Client(), Limit: time.Hour,
		Wait: func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }})
	require.NoError(t, err)
	_, err = c.Whoami(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.seen, 1)
}
