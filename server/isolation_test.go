package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// bodyOf returns a problem without what names the request.
func bodyOf(t *testing.T, text []byte) string {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(text, &body))
	delete(body, "instance")
	delete(body, "request_id")
	out, err := json.Marshal(body)
	require.NoError(t, err)
	return string(out)
}

// insertID puts an id where the text leaves a place for one.
func insertID(text, id string) string { return strings.ReplaceAll(text, "%s", id) }

// Another tenant's id gets the same answer, to the byte, as one that nobody has.
func TestTenantsDoNotExistForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	w.createTenant("other")
	w.createKey("alice", "admin")
	allocated := ask[contract.Allocation](w, "alice", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "a")
	reserved := ask[contract.Reservation](w, "alice", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":1,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key", "r")
	scheduled := ask[contract.Schedule](w, "alice", http.MethodPost, "/v1/schedules",
		`{"pool":"lab","name":"x","gpus":1,`+
			`"start_local":"2026-03-02T09:00:00","timezone":"UTC","rrule":"FREQ=DAILY",`+
			`"duration_seconds":60}`, "Idempotency-Key", "s")
	array := ask[contract.JobsSubmitted](w, "alice", http.MethodPost, "/v1/jobs",
		`{"pool":"lab","command":["true"],"hold":true,"array":{"last":1}}`, "Idempotency-Key", "jobs").ArrayID
	person := ask[contract.User](w, "alice", http.MethodPost, "/v1/users", `{"email":"a@example.org","role":"member"}`)
	key := w.createKey("bob", "member")
	planned := ask[contract.Plan](w, "alice", http.MethodPost, "/v1/plans",
		`{"kind":"allocate","request":{"pool":"lab","gpus":1}}`)
	own := ask[contract.Whoami](w, "alice", http.MethodGet, "/v1/whoami", "")
	w.refuse("alice", http.MethodPost, "/v1/reservations",
		`{"pool":"lab","gpus":8,"start":"2026-03-02T10:00:00Z","end":"2026-03-02T11:00:00Z"}`, "Idempotency-Key",
		"none")
	refused := ask[contract.List[contract.Decision]](w, "alice", http.MethodGet, "/v1/decisions?kind=refusal", "").Items
	require.Len(t, refused, 1)
	ask[contract.Prewarm](w, "alice", http.MethodPost, "/v1/prewarm/pause", `{"reason":"ours"}`, "Idempotency-Key", "p")

	w.createAgentKey("bot")
	forecast := w.recordForecast("bot", "fct_00000000000000000000000001")

	before := w.journalLength()
	for i, c := range []struct{ method, path, id, body string }{
		{http.MethodGet, "/v1/allocations/%s", allocated.ID, ""},
		{http.MethodDelete, "/v1/allocations/%s", allocated.ID, ""},
		{http.MethodPost, "/v1/allocations/%s/release", allocated.ID, ""},
		{http.MethodPost, "/v1/allocations/%s/extend", allocated.ID, `{"by_seconds":60}`},
		{http.MethodGet, "/v1/reservations/%s", reserved.ID, ""},
		{http.MethodDelete, "/v1/reservations/%s", reserved.ID, ""},
		{http.MethodPost, "/v1/reservations/%s/claim", reserved.ID, `{}`},
		{http.MethodGet, "/v1/allocations/%s/explain", allocated.ID, ""},
		{http.MethodGet, "/v1/reservations/%s/explain", reserved.ID, ""},
		{http.MethodGet, "/v1/plans/%s", planned.ID, ""},
		{http.MethodPost, "/v1/plans/%s/apply", planned.ID, ""},
		{http.MethodGet, "/v1/schedules/%s", scheduled.ID, ""},
		{http.MethodDelete, "/v1/schedules/%s", scheduled.ID, ""},
		{http.MethodGet, "/v1/schedules/%s/occurrences", scheduled.ID, ""},
		{http.MethodGet, "/v1/schedules/%s/explain", scheduled.ID, ""},
		{http.MethodPost, "/v1/schedules/%s/pause", scheduled.ID, ""},
		{http.MethodPost, "/v1/schedules/%s/resume", scheduled.ID, ""},
		{http.MethodPost, "/v1/jobs/cancel", array, `{"array_id":"%s"}`},
		{http.MethodPost, "/v1/jobs/hold", array, `{"array_id":"%s"}`},
		{http.MethodPatch, "/v1/users/%s", person.ID, `{"active":false}`},
		{http.MethodDelete, "/v1/keys/%s", key.ID, ""},
		{http.MethodPut, "/v1/users/%s/caps", person.ID, `{}`},
		{http.MethodGet, "/v1/organizations/%s", own.OrganizationID, ""},
		{http.MethodGet, "/v1/organizations/%s/quota", own.OrganizationID, ""},
		{http.MethodGet, "/v1/organizations/%s/usage", own.OrganizationID, ""},
		{http.MethodGet, "/v1/decisions/%s", refused[0].ID, ""},
		{http.MethodGet, "/v1/decisions/%s", refused[0].Subject, ""},
		{http.MethodGet, "/v1/forecasts/%s", forecast, ""},
		{http.MethodPost, "/v1/forecasts/outcomes", forecast,
			`{"outcomes":[{"id":"%s","gpus":1,"counted_at":"2026-03-02T08:00:00Z"}]}`},
		{http.MethodPost, "/v1/plans", reserved.ID, `{"kind":"claim","request":{"reservation_id":"%s"}}`},
		{http.MethodPost, "/v1/plans", reserved.ID, `{"kind":"cancel","request":{"reservation_id":"%s"}}`},
		{http.MethodPost, "/v1/plans", allocated.ID, `{"kind":"release","request":{"allocation_id":"%s"}}`},
		{http.MethodPost, "/v1/prewarm/pause", own.OrganizationID, `{"organization_id":"%s"}`},
		{http.MethodPost, "/v1/prewarm/resume", own.OrganizationID, `{"organization_id":"%s"}`},
	} {
		unknown := c.id[:len(c.id)-1] + "z"
		send := func(id, key string) *httptest.ResponseRecorder {
			return w.send("other", c.method, insertID(c.path, id), insertID(c.body, id), "If-Match", `"1"`,
				"Idempotency-Key",
				fmt.Sprint(key, i))
		}
		theirs, nobodys := send(c.id, "theirs"), send(unknown, "nobodys")
		want := 404
		if strings.HasPrefix(c.path, "/v1/prewarm/") {
			want = 422 // the body names it
		}
		require.Equal(t, want, theirs.Code, "%s %s: %s", c.method, c.path, theirs.Body)
		require.Equal(t, nobodys.Code, theirs.Code, c.path)
		require.Equal(t, strings.ReplaceAll(bodyOf(t, nobodys.Body.Bytes()), unknown, "%s"),
			strings.ReplaceAll(bodyOf(t, theirs.Body.Bytes()), c.id, "%s"), "%s %s", c.method, c.path)
	}
	require.Equal(t, before, w.journalLength())
	require.Equal(t, contract.CodePermissionDenied,
		w.refuse("other", http.MethodPut, "/v1/organizations/"+own.OrganizationID+"/quota",
			`{"max_gpus":1,"speculation_per_day":{"amount":"1","currency":"USD"}}`, "If-Match", `"1"`).Code)
	for key, n := range map[string]int{"alice": 1, "other": 0} {
		require.Len(t, ask[contract.Prewarm](w, key, http.MethodGet, "/v1/prewarm", "").Pauses, n)
		require.Len(t, ask[contract.Shares](w, key, http.MethodGet, "/v1/pools/lab/shares", "").Items, n)
	}
	for _, id := range []string{refused[0].Subject, allocated.ID, reserved.ID} {
		require.Empty(t, ask[contract.List[contract.Decision]](w, "other", http.MethodGet, "/v1/decisions?subject="+id,
			"").Items)
	}
	for _, list := range []string{"allocations", "reservations", "schedules", "users", "decisions", "forecasts"} {
		require.Empty(t, ask[contract.List[map[string]any]](w, "other", http.MethodGet, "/v1/"+list, "").Items, list)
	}
	w.clock.Advance(2 * time.Hour)
	ask[contract.Recorded](w, "bot", http.MethodPost, "/v1/forecasts/outcomes",
		`{"outcomes":[{"id":"`+forecast+`","gpus":1,"counted_at":"2026-03-02T10:00:00Z"}]}`)
	for key, n := range map[string]int{"alice": 1, "root": 1, "other": 0} {
		require.Len(t, ask[contract.CalibrationReport](w, key, http.MethodGet, "/v1/reports/calibration", "").Sources,
			n)
	}
	require.Equal(t, forecast, w.recordForecast("other", forecast), "ids are each tenant's own")
	for _, e := range ask[contract.EventList](w, "other", http.MethodGet, "/v1/events", "").Items {
		require.NotEqual(t, own.OrganizationID, e.OrganizationID)
	}
}

// TestTrapF is trap f: concurrent requests at the edge of the quota admit exactly
// the quota.
func TestTrapF(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools",
		strings.Replace(poolBody, `"max_nodes":2`, `"max_nodes":32`, 1))
	const requests, quota = 64, 16
	var codes [requests]int
	var problems [requests]contract.Problem
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range requests {
		all.Go(func() {
			<-start
			out := w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`, "Idempotency-Key",
				fmt.Sprint(i))
			codes[i] = out.Code
			_ = json.Unmarshal(out.Body.Bytes(), &problems[i])
		})
	}
	close(start)
	all.Wait()
	admitted := 0
	for i, code := range codes {
		if code == http.StatusAccepted {
			admitted++
			continue
		}
		require.Equal(t, contract.CodeQuotaExceeded, problems[i].Code, "%d", code)
	}
	require.Equal(t, quota, admitted)
	live := ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, "/v1/allocations?limit=200", "")
	require.Len(t, live.Items, quota)
}

// The same request sent many times at once has one effect.
func TestOneKeyManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	var all sync.WaitGroup
	var ids sync.Map
	for range 16 {
		all.Go(func() {
			out := w.send("root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`, "Idempotency-Key",
				"same")
			var a contract.Allocation
			_ = json.Unmarshal(out.Body.Bytes(), &a)
			ids.Store(fmt.Sprint(out.Code, " ", a.ID), true)
		})
	}
	all.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 1, n)
	require.Len(t, ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, "/v1/allocations", "").Items, 1)
}
