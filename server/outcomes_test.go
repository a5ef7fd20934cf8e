package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func TestANodeIsDrainedResumedExplainedAndQuarantined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(w.createPool(), 1)
	node := ask[contract.List[contract.Node]](w, "root", http.MethodGet, "/v1/nodes", "").Items[0]
	require.Equal(t, "ready", node.State)
	path := "/v1/nodes/" + node.ID
	labelled := ask[contract.Node](w, "root", http.MethodPatch, path, `{"labels":{"disk":"nvme"},"taints":["old"]}`,
		"If-Match", fmt.Sprintf("%q", fmt.Sprint(node.Version)))
	require.Equal(t, map[string]string{"disk": "nvme"}, labelled.Labels)
	require.Equal(t, []string{"old"}, ask[contract.Node](w, "root", http.MethodGet, path, "").Taints)
	drained := ask[contract.Node](w, "root", http.MethodPost, path+"/drain", "")
	require.Equal(t, "draining", drained.State)
	require.Equal(t, "ready", ask[contract.Node](w, "root", http.MethodPost, path+"/resume", "").State)
	require.NotEmpty(t, ask[contract.Explanation](w, "root", http.MethodGet, path+"/explain", "").Summary)
	require.Equal(t, "quarantined", ask[contract.Node](w, "root", http.MethodPost, path+"/quarantine", "").State)
}

func TestAScheduleGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	body := `{"pool":"lab","name":"daily","gpus":1,` +
		`"start_local":"2026-03-02T09:00:00","timezone":"Europe/Berlin","rrule":"FREQ=DAILY","duration_seconds":3600}`
	dry := ask[contract.Schedule](w, "root", http.MethodPost, "/v1/schedules?dry_run=true", body)
	require.Empty(t, ask[contract.List[contract.Schedule]](w, "root", http.MethodGet, "/v1/schedules", "").Items,
		"nothing was changed")
	require.Empty(t, ask[contract.List[contract.Reservation]](w, "root", http.MethodGet, "/v1/reservations", "").Items)
	s := ask[contract.Schedule](w, "root", http.MethodPost, "/v1/schedules", body, "Idempotency-Key", "k")
	require.NotEmpty(t, s.Next)
	require.Len(t, dry.Next, len(s.Next), "the dry run told what would happen")
	require.Equal(t, "booked", dry.Next[0].State)
	dates := ask[contract.List[contract.Occurrence]](w, "root", http.MethodGet, "/v1/schedules/"+s.ID+"/occurrences",
		"").Items
	require.Equal(t, s.Next[:5], dates)
	require.Equal(t, "booked", ask[contract.Reservation](w, "root", http.MethodGet,
		"/v1/reservations/"+dates[0].ReservationID, "").State)
	to := url.QueryEscape(dates[1].Start.Add(time.Second).Format(time.RFC3339))
	require.Equal(t, dates[:2], ask[contract.List[contract.Occurrence]](w, "root", http.MethodGet,
		"/v1/schedules/"+s.ID+"/occurrences?to="+to, "").Items)
	e := ask[contract.Explanation](w, "root", http.MethodGet, "/v1/schedules/"+s.ID+"/explain", "")
	require.Equal(t, "active", e.State)
	require.Contains(t, e.Summary, dates[0].ReservationID)
	p := w.refuse("root", http.MethodPost, "/v1/schedules?dry_run=true",
		strings.Replace(body, `"gpus":1`, `"gpus":99`, 1))
	require.Equal(t, contract.CodeNoMatchingHardware, p.Code)
	p = w.refuse("root", http.MethodPost, "/v1/schedules", body, "Idempotency-Key", "again")
	require.Equal(t, contract.CodeNameTaken, p.Code)
	require.Equal(t, "Schedule "+s.ID+` is named "`+s.Name+`".`, p.Detail)
	require.Equal(t, "forewarm schedules show "+s.ID, p.Fixes[1].Command)
	require.True(t, ask[contract.Schedule](w, "root", http.MethodPost, "/v1/schedules/"+s.ID+"/pause", "").Paused)
	require.False(t, ask[contract.Schedule](w, "root", http.MethodPost, "/v1/schedules/"+s.ID+"/resume", "").Paused)
}

// A claim that finds no warm node waits as an allocation does; as a dry run it
// changes nothing.
func TestAClaimWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	at := w.clock.Now().Add(time.Second)
	r := ask[contract.Reservation](w, "root", http.MethodPost, "/v1/reservations",
		fmt.Sprintf(`{"pool":"lab","gpus":1,"start":%q,"end":%q}`,
			at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)), "Idempotency-Key", "k")
	w.clock.Advance(time.Second)
	path := "/v1/reservations/" + r.ID + "/claim"
	require.Equal(t, 200, w.send("root", http.MethodPost, path+"?dry_run=true", `{}`).Code)
	out := w.send("root", http.MethodPost, path, `{}`, "Idempotency-Key", "k")
	require.Equal(t, 202, out.Code, out.Body.String())
	require.NotEmpty(t, out.Header().Get("Location"))
}

func TestCapsOfAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := ask[contract.User](w, "root", http.MethodPost, "/v1/users", `{"email":"ada@example.org","role":"member"}`)
	got := ask[contract.User](w, "root", http.MethodPut, "/v1/users/"+u.ID+"/caps", `{"caps":`+agentCaps+`}`,
		"If-Match", fmt.Sprintf(`"%d"`, u.Version))
	require.Equal(t, 4, got.Caps.MaxGPUs)
}

func TestRecoveryBeginsAndIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.createPool()
	begun := ask[contract.RecoveryState](w, "root", http.MethodPost, "/v1/recovery/begin",
		`{"reason":"restored from a copy"}`)
	require.True(t, begun.Recovering)
	require.Equal(t, p.ID, begun.Pools[0].PoolID)
	require.Equal(t, begun, ask[contract.RecoveryState](w, "root", http.MethodGet, "/v1/recovery", ""))
	for _, path := range []string{"/v1/reservations", "/v1/reservations?dry_run=true"} {
		refused := w.refuse("root", http.MethodPost, path,
			`{"pool":"lab","gpus":1,"start":"2026-03-02T12:00:00Z","end":"2026-03-02T13:00:00Z"}`, "Idempotency-Key",
			"k")
		require.Equal(t, contract.CodeRecovering, refused.Code)
		require.Contains(t, refused.Detail, "promised")
	}
	require.False(t, ask[contract.RecoveryState](w, "root", http.MethodPost, "/v1/recovery/confirm", "").Recovering)
}
