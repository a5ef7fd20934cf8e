package server_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/events"
)

func TestMain(m *testing.M) {
	leaktest.VerifyTestMain(reaching{m}, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}

// listenHTTP serves the world over a real connection.
func (w *world) listenHTTP() *httptest.Server {
	w.t.Helper()
	s := httptest.NewServer(w.handler)
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) newClient(key string) *client.Client {
	w.t.Helper()
	s := w.listenHTTP()
	c, err := client.New(s.URL, w.keys[key], s.Client())
	require.NoError(w.t, err)
	return c
}

func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.newClient("root")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []string
	for e, err := range c.Events(ctx, 1) {
		require.NoError(t, err)
		seen = append(seen, e.Type)
		switch len(seen) {
		case 1: // what was there is sent; then something happens
			w.createPool()
			require.NoError(t, w.server.Step(ctx))
		case 2:
			cancel()
		}
	}
	require.Equal(t, []string{"key.created", "pool.created"}, seen)
}

func TestStreamsResumeAndFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	s := w.listenHTTP()
	read := func(key string, lines int, path string, headers ...string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+w.keys[key])
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := s.Client().Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		require.Equal(t, 200, resp.StatusCode)
		var got []string
		for scan := bufio.NewScanner(resp.Body); len(got) < lines && scan.Scan(); {
			got = append(got, scan.Text())
		}
		return strings.Join(got, "\n")
	}
	first := read("root", 5, "/v1/events/stream?type=pool.")
	require.True(t, strings.HasPrefix(first, "retry: 2000\n\nid: 3\nevent: pool.created\ndata: {"), first)
	require.Contains(t, read("root", 3, "/v1/events/stream?after=1", "Last-Event-ID", "3"), "id: 4")
	for _, wrong := range []string{"abc", "-1"} {
		p := w.refuse("root", http.MethodGet, "/v1/events/stream", "", "Last-Event-ID", wrong)
		require.Equal(t, "Last-Event-ID", p.Errors[0].Pointer, wrong)
	}
	asLines := read("root", 1, "/v1/events/stream?after=2", "Accept", "application/x-ndjson")
	require.True(t, strings.HasPrefix(asLines, `{"seq":3,`), asLines)
	require.Contains(t, asLines, `"pool_name":"lab"`, "as lists have it")
	require.Contains(t, asLines, `"actor_name":"root"`)
	require.NotContains(t, read("other", 1, "/v1/events/stream", "Accept", "application/x-ndjson"), "actor_name",
		"who is of another organization is not named")
	require.Contains(t, read("other", 3, "/v1/events/stream"), "id: 4",
		"a tenant's stream begins with its own first event")
}

// A request that prefers to wait is answered when its GPUs are there.
func TestPreferWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPool()
	c := w.newClient("root")
	got := make(chan contract.Allocation)
	failed := make(chan error, 1)
	go func() {
		a, err := c.Allocate(t.Context(), contract.AllocationCreate{Pool: "lab", GPUs: 2},
			client.Options{Wait: 50 * time.Second})
		failed <- err
		got <- a
	}()
	for {
		w.runDueTasks(p)
		require.NoError(t, w.server.Step(t.Context()))
		live := ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, "/v1/allocations?state=active", "")
		if len(live.Items) > 0 {
			break
		}
	}
	require.NoError(t, w.server.Step(t.Context()))
	require.NoError(t, <-failed)
	require.Equal(t, "active", (<-got).State)
}

// When the time is up, the answer is the allocation as it is.
func TestPreferWaitEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	out := w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":2}`, "Idempotency-Key", "k",
		"Prefer", "respond-async, wait=1")
	require.Equal(t, 202, out.Code)
	require.Contains(t, out.Body.String(), "pending")
}

func TestRunEndsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	s := w.listenHTTP()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/events/stream", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+w.keys["root"])
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-done)
	_, err = io.Copy(io.Discard, resp.Body) // to the end, which must come
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// The SDK and the server agree on every kind of answer.
func TestTheSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ctx := w.newClient("root"), t.Context()
	p, err := c.CreatePool(ctx, contract.PoolCreate{Name: "lab", Provisioner: "sim", Model: "a100-80g", GPUsPerNode: 4,
		GPUMemoryMiB:     81920,
		PricePerNodeHour: contract.Money{Amount: "8.4", Currency: contract.Currency}, MaxNodes: 2,
		WarmHoldSeconds: 1200,
		MaxLeaseSeconds: 86400, BootP50Seconds: 60, BootP95Seconds: 120})
	require.NoError(t, err)
	again, err := c.Pool(ctx, "lab")
	require.NoError(t, err)
	require.Equal(t, &contract.GPUCounts{}, again.GPUCounts)
	require.InDelta(t, 180, again.LeadSeconds, 0, "a boot, and a margin")
	again.GPUCounts, again.LeadSeconds = nil, 0
	require.Equal(t, p, again)
	paused := true
	p, err = c.PatchPool(ctx, "lab", p.Version, contract.PoolPatch{Paused: &paused})
	require.NoError(t, err)
	require.True(t, p.Paused)
	_, err = c.PatchPool(ctx, "lab", 1, contract.PoolPatch{Paused: &paused})
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, contract.CodeETagMismatch, e.Problem.Code)

	at := w.clock.Now().Add(time.Hour)
	for i := range 3 {
		_, err := c.Reserve(ctx, contract.ReservationCreate{Pool: "lab", GPUs: 1, Start: at, End: at.Add(time.Hour),
			Name: string(rune('a' + i))}, client.Options{})
		require.NoError(t, err)
	}
	all, err := client.All(c.Reservations(ctx, client.Filter{Pool: "lab", State: []string{"booked", "ready"},
		PageSize: 2}))
	require.NoError(t, err)
	require.Len(t, all, 3)
	dry, err := c.Allocate(ctx, contract.AllocationCreate{Model: "a100-80g", GPUs: 4}, client.Options{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 4, dry.GPUs)
	held, err := c.Allocate(ctx, contract.AllocationCreate{Model: "a100-80g", GPUs: 4}, client.Options{})
	require.NoError(t, err)
	_, err = c.Release(ctx, held.ID)
	require.NoError(t, err)
	s, err := c.CreateSchedule(ctx, contract.ScheduleCreate{Pool: "lab", Name: "daily", GPUs: 1,
		StartLocal: "2026-03-02T09:00:00",
		Timezone:   "Europe/Berlin", RRule: "FREQ=DAILY", DurationSeconds: 3600}, client.Options{})
	require.NoError(t, err)
	dates, err := c.Occurrences(ctx, s.ID, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Len(t, dates, 5)
	_, err = c.DeleteSchedule(ctx, s.ID)
	require.NoError(t, err)
	_, err = c.Schedule(ctx, s.ID)
	require.ErrorAs(t, err, &e)
	require.Equal(t, contract.CodeNotFound, e.Problem.Code)
	report, err := c.Report(ctx, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Nil(t, report.ZeroWaitRate)
	list, err := c.ListEvents(ctx, 0, 3)
	require.NoError(t, err)
	require.Len(t, list.Items, 3)
}

// What a key may see is asked again when the answer no longer holds.
func TestAStreamEndsWhenItsKeySeesOtherThings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := 0
	viewer := func(context.Context) (ledger.Scope, time.Duration, error) {
		asked++
		return ledger.Scope{OrganizationID: "org_1", All: asked < 3}, time.Millisecond, nil
	}
	out := httptest.NewRecorder()
	events.NewFeed(w.ledger.Store(), slog.New(slog.DiscardHandler)).Stream(out,
		httptest.NewRequest(http.MethodGet, "/", nil),
		events.Following{Viewer: viewer, Filter: ledger.EventFilter{After: 7}})
	require.Equal(t, 3, asked)
	require.Contains(t, out.Body.String(),
		`{"seq":7,"time":"0001-01-01T00:00:00Z","type":"stream.ended","subject":"","reason":"permission-denied"`)
}
