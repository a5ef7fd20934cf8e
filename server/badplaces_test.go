package server_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A refusal names the place that was wrong, in the words of the request.
func TestRefusalsNameTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(w.createPool(), 1)
	w.createKey("alice", "member")
	made := ask[contract.Allocation](w, "alice", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "made")
	for name, c := range map[string]struct {
		path, body, pointer, says string
	}{
		"no start": {"/v1/reservations", `{"pool":"lab","gpus":1,"end":"2026-12-05T00:00:00Z"}`,
			"/start", "is missing"},
		"no end": {"/v1/reservations", `{"pool":"lab","gpus":1,"start":"2026-12-05T00:00:00Z"}`,
			"/end", "is missing"},
		"no window":       {"/v1/reservations", `{"pool":"lab","gpus":1}`, "/start", "is missing"},
		"no GPUs":         {"/v1/allocations", `{"pool":"lab"}`, "/gpus", "must be given"},
		"no GPUs, evenly": {"/v1/allocations", `{"pool":"lab","spread":"even"}`, "/gpus", "must be given"},
		"no such reservation": {"/v1/jobs", `{"pool":"lab","command":["true"],"reservation_id":"rsv_zz"}`,
			"/reservation_id", "there is none of that id"},
		"a long lease": {"/v1/allocations", `{"pool":"lab","gpus":1,"lease_seconds":31536000}`, "/lease_seconds",
			"at most 7d"},
		"a long extension": {"/v1/allocations/" + made.ID + "/extend", `{"by_seconds":31536000}`, "/by_seconds",
			"at most 7d"},
		"memory of no pool": {"/v1/allocations", `{"gpus":1,"min_gpu_memory_mib":100001}`, "/min_gpu_memory_mib",
			"must be at most "},
		"memory of no node": {"/v1/allocations", `{"gpus":1,"min_node_memory_mib":100001}`, "/min_node_memory_mib",
			"cannot be met: no pool"},
	} {
		p := w.refuse("alice", http.MethodPost, c.path, c.body, "Idempotency-Key", "k"+strings.ReplaceAll(name, " ", "-"))
		require.NotEmpty(t, p.Errors, "%s: %s", name, p.Detail)
		require.Equal(t, c.pointer, p.Errors[0].Pointer, "%s: %s", name, p.Detail)
		require.Contains(t, p.Errors[0].Message, c.says, name)
	}
}

// What a job may leave out, as its description says.
func TestJobsNeedNotSayHowManyGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	for body, want := range map[string]int{
		``:                             1,
		`,"spread":"even"`:             1,
		`,"gpus_per_node":2`:           2,
		`,"nodes":1`:                   1,
		`,"nodes":2,"spread":"even"`:   2,
		`,"nodes":2,"gpus_per_node":2`: 4,
	} {
		got := ask[contract.JobsSubmitted](w, "root", http.MethodPost, "/v1/jobs",
			`{"pool":"lab","command":["true"]`+body+`}`, "Idempotency-Key", hex.EncodeToString([]byte("k"+body)))
		require.Equal(t, want, got.Jobs[0].GPUs, body)
	}
	made := w.send("root", http.MethodPost, "/v1/jobs", `{"pool":"lab","command":["true"]}`, "Idempotency-Key", "one")
	require.Contains(t, made.Body.String(), strings.TrimPrefix(made.Header().Get("Location"), "/v1/jobs/"))
	require.Equal(t, `"1"`, made.Header().Get("ETag"))
	require.Equal(t, http.StatusOK, w.send("root", http.MethodGet, made.Header().Get("Location"), "").Code)
	made = w.send("root", http.MethodPost, "/v1/jobs", `{"pool":"lab","command":["true"],"array":{"first":0,"last":1}}`,
		"Idempotency-Key", "two")
	require.Equal(t, http.StatusCreated, made.Code)
	require.Empty(t, made.Header().Get("Location"))
}

// A name that there is not is told those that there are at its place.
func TestUnknownFieldsNameThoseOfTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	job := func(more string) []string {
		p := w.refuse("root", http.MethodPost, "/v1/jobs", `{"pool":"lab","command":["true"],`+more+`}`,
			"Idempotency-Key", hex.EncodeToString([]byte(more)))
		require.Equal(t, "unknown-field", p.Errors[0].Code)
		return p.Errors[0].Allowed
	}
	top := job(`"bogus":1`)
	require.Contains(t, top, "retries")
	require.NotContains(t, top, "failed")
	require.Equal(t, []string{"failed", "lost"}, job(`"retries":{"failed":1,"lost":1,"bogus":1}`))
	inList := job(`"dependencies":[{"job_id":"job_1","bogus":1}]`)
	require.True(t, slices.IsSorted(inList))
	require.Equal(t, []string{"condition", "job_id"}, inList)
	p := w.refuse("root", http.MethodPost, "/v1/jobs", `{"pool":"lab","command":["true"],"x":1}`, "Idempotency-Key", "x")
	require.NotContains(t, p.Errors[0].Message, "did you mean")
}

// A parameter that is given twice is not half heeded.
func TestAParameterCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/v1/jobs?state=failed&state=completed", "/v1/jobs?limit=1&limit=2"} {
		p := w.refuse("root", http.MethodGet, path, "")
		require.Equal(t, contract.CodeInvalidParameter, p.Code)
		require.Contains(t, p.Fixes[0].Label, "by commas")
	}
	require.Empty(t, ask[contract.List[contract.Job]](w, "root", http.MethodGet, "/v1/jobs?state=failed,completed",
		"").Items)
}

// Of the domain of an address case does not count.
func TestAnAddressIsOnePersons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := `{"email":"Ada@%s","role":"member"}`
	made := ask[contract.User](w, "root", http.MethodPost, "/v1/users", fmt.Sprintf(user, "Example.ORG"),
		"Idempotency-Key", "one")
	require.Equal(t, "Ada@example.org", made.Email)
	p := w.refuse("root", http.MethodPost, "/v1/users", fmt.Sprintf(user, "EXAMPLE.org"), "Idempotency-Key", "two")
	require.Equal(t, contract.CodeNameTaken, p.Code)
	for _, name := range []string{"Ada@EXAMPLE.org", "Ada@example.org"} {
		require.Equal(t, made.ID, ask[contract.User](w, "root", http.MethodGet, "/v1/users/"+name, "").ID)
	}
}

// Nobody waits for what follows an event that there is not.
func TestEventsFollowOneThatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	last := ask[contract.EventList](w, "root", http.MethodGet, "/v1/events?limit=500", "").Next
	for _, path := range []string{"/v1/events?after=99999", "/v1/events/stream?after=99999"} {
		p := w.refuse("root", http.MethodGet, path, "")
		require.Equal(t, "after", p.Errors[0].Pointer)
		require.Contains(t, p.Detail, "the last is ")
	}
	p := w.refuse("root", http.MethodGet, "/v1/events/stream", "", "Last-Event-ID", "99999")
	require.Equal(t, "Last-Event-ID", p.Errors[0].Pointer)
	require.Positive(t, last)
}
