package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

const jobBatchPath = "/v1/jobs/batch"

// A batch of jobs is answered job by job, in JSON or line by line, as it was sent; sent again it is answered the same.
func TestABatchOfJobs(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	before := f.submit("root", `{"pool":"`+f.pool+`","command":["true"]}`)[0]
	items := []string{
		`{"command":["sh","-c","echo a\n\techo b"],"input":"aGk=","dependencies":[{"job_id":"` + before.ID + `"}]}`,
		`{"command":[]}`, `{"command":["true"],"array":{"last":2},"hold":true}`, `{"command":["true"],"gpus":1000}`,
		`{"command":["true"],"name":"last"}`}
	for i := range items {
		items[i] = strings.Replace(items[i], "{", `{"pool":"`+f.pool+`",`, 1)
	}
	for _, c := range []struct{ kind, body string }{
		{"application/json", ` { "items" : [` + strings.Join(items, ",") + `]}`},
		{"application/x-ndjson", strings.Join(items, "\n") + "\n"},
	} {
		dry := f.send("root", http.MethodPost, jobBatchPath+"?dry_run=true", c.body, "Content-Type", c.kind)
		require.Equal(t, http.StatusOK, dry.Code, dry.Body.String())
		was := f.countJobs("all=true")
		out := f.send("root", http.MethodPost, jobBatchPath, c.body, "Content-Type", c.kind, "Idempotency-Key", c.kind)
		require.Equal(t, http.StatusOK, out.Code, out.Body.String())
		require.Equal(t, c.kind, out.Header().Get("Content-Type"))
		got := readJobResults(t, c.kind, out.Body.String())
		require.Equal(t, len(readJobResults(t, c.kind, dry.Body.String())), len(got))
		var status []int
		for i, x := range got {
			require.Equal(t, i, x.Index)
			status = append(status, x.Status)
		}
		require.Equal(t, []int{201, 422, 201, 422, 201}, status, out.Body.String())
		require.Equal(t, "/command", got[1].Field)
		require.Equal(t, "held", got[2].State)
		require.Equal(t, 3, got[2].Jobs)
		require.Len(t, f.listJobs("array="+got[2].ArrayID), 3)
		require.Equal(t, []string{"sh", "-c", "echo a\n\techo b"}, f.job(got[0].JobID).Command)
		require.Equal(t, before.ID, f.job(got[0].JobID).Dependencies[0].JobID)
		require.Equal(t, "last", f.job(got[4].JobID).Name)
		again := f.send("root", http.MethodPost, jobBatchPath, c.body, "Content-Type", c.kind, "Idempotency-Key", c.kind)
		require.Equal(t, out.Body.String(), again.Body.String())
		require.Equal(t, "true", again.Header().Get("Idempotency-Replayed"))
		require.Equal(t, was.Pending+2, f.countJobs("all=true").Pending)
		require.Equal(t, contract.CodeIdempotencyKeyReused, f.refuse("root", http.MethodPost, jobBatchPath,
			strings.Replace(c.body, "last", "other", 1), "Content-Type", c.kind, "Idempotency-Key", c.kind).Code)
	}
}

func readJobResults(t *testing.T, kind, text string) []contract.JobBatchResult {
	t.Helper()
	var all contract.JobBatchResults
	if kind == "application/json" {
		require.NoError(t, json.Unmarshal([]byte(text), &all))
		require.Len(t, all.Items, all.Accepted+all.Refused)
		return all.Items
	}
	for line := range strings.Lines(text) {
		var one contract.JobBatchResult
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		all.Items = append(all.Items, one)
	}
	return all.Items
}

// Each job of a batch is held to what one that comes alone is held to.
func TestAJobOfABatchIsCheckedLikeOneAlone(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	var items []string
	for _, body := range []string{`{"gpus":1}`, `{"command":[""]}`, `{"command":["true"],"gpus":-1}`,
		`{"command":["true"],"state":"completed"}`, `{"command":["true"],"mounts":[{"source":"/data"}]}`,
		`{"command":["true"],"environment":{"A=B":"1"}}`, `{"command":["true"],"dependencies":[{"job_id":"job_404"}]}`,
		`{"command":["true"],"array":{"first":2,"last":1}}`, `{"command":["true"],"array":{"first":0,"last":10000000}}`,
		`{"command":["true"],"reservation_id":"res_404"}`, `{"command":["true"],"image":"a"}`} {
		items = append(items, strings.Replace(body, "{", `{"pool":"`+f.pool+`",`, 1))
	}
	f.report(0) // its daemon has no program for containers
	f.report(1)
	got := ask[contract.JobBatchResults](f.world, "root", http.MethodPost, jobBatchPath, `{"items":[`+
		strings.Join(items, ",")+`]}`, "Idempotency-Key", "batch")
	for i, item := range got.Items {
		alone := f.refuse("root", http.MethodPost, "/v1/jobs", items[i], "Idempotency-Key", fmt.Sprintf("alone-%d", i))
		require.Equal(t, alone.Status, item.Status, items[i])
		require.Equal(t, alone.Code, item.Code, items[i])
		require.NotEmpty(t, item.Message, items[i])
		if len(alone.Errors) > 0 {
			require.Equal(t, alone.Errors[0].Pointer, item.Field, items[i])
		}
	}
	require.Len(t, items, got.Refused)
	require.Empty(t, f.listJobs("all=true"))
}

// What is no batch is refused whole.
func TestBatchesOfJobsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	const lines = "application/x-ndjson"
	good := `{"pool":"` + f.pool + `","command":["true"]}`
	key := 0
	for name, c := range map[string]struct {
		kind, body, code string
		status           int
	}{
		"an array":        {"application/json", `[` + good + `]`, contract.CodeMalformedJSON, 400},
		"one job":         {"application/json", good, contract.CodeValidationFailed, 422},
		"no items":        {"application/json", `{}`, contract.CodeValidationFailed, 422},
		"empty":           {"application/json", `{"items":[]}`, contract.CodeValidationFailed, 422},
		"a number":        {"application/json", `{"items":7}`, contract.CodeValidationFailed, 422},
		"twice":           {"application/json", `{"items":[` + good + `],"items":[]}`, contract.CodeValidationFailed, 422},
		"more":            {"application/json", `{"items":[` + good + `],"x":1}`, contract.CodeValidationFailed, 422},
		"a rest":          {"application/json", `{"items":[` + good + `]} 7`, contract.CodeMalformedJSON, 400},
		"broken":          {"application/json", `{"items":[{]}`, contract.CodeMalformedJSON, 400},
		"cut":             {"application/json", `{"items":[` + good, contract.CodeMalformedJSON, 400},
		"text":            {"text/csv", good, contract.CodeUnsupportedMediaType, 415},
		"broken line":     {lines, good + "\n{\"command\":[\n" + good, contract.CodeMalformedJSON, 400},
		"a line of items": {lines, "[" + good + "]", contract.CodeValidationFailed, 422},
		"many": {lines, strings.Repeat(good+"\n", contract.MaxBatch+1), contract.CodeValidationFailed,
			422},
		"many jobs": {lines, good + "\n" + strings.Replace(good, "}", `,"array":{"last":9999}}`, 1),
			contract.CodeValidationFailed, 422},
		"large":     {lines, strings.Repeat(" ", 8<<20) + good, contract.CodeBodyTooLarge, 413},
		"an escape": {"application/json", `{"items":[{"command":["echo","\u001b[2J"]}]}`, contract.CodeValidationFailed, 422},
		"a program of lines": {"application/json", `{"items":[{"command":["/x\ny"]}]}`, contract.CodeValidationFailed,
			422},
	} {
		key++
		p := f.refuse("root", http.MethodPost, jobBatchPath, c.body, "Content-Type", c.kind, "Idempotency-Key",
			fmt.Sprintf("refused-%d", key))
		require.Equal(t, c.code, p.Code, name)
		require.Equal(t, c.status, p.Status, name)
	}
	require.Equal(t, contract.CodeMissingIdempotencyKey, f.refuse("root", http.MethodPost, jobBatchPath,
		`{"items":[`+good+`]}`).Code)
	require.Empty(t, f.listJobs("all=true"))
}

// A batch is its sender's: who may submit no job submits no batch, and others see nothing of it.
func TestWhoSubmitsBatchesOfJobs(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	f.createKey("viewer", "viewer")
	f.createAgentKey("agent")
	f.createTenant("other")
	body := `{"items":[{"pool":"` + f.pool + `","command":["true"]}]}`
	for _, key := range []string{"viewer", "agent", "daemon0"} {
		require.Equal(t, contract.CodePermissionDenied, f.refuse(key, http.MethodPost, jobBatchPath, body,
			"Idempotency-Key", "1").Code, key)
	}
	send := func(key, body string) contract.JobBatchResult {
		return ask[contract.JobBatchResults](f.world, key, http.MethodPost, jobBatchPath, body, "Idempotency-Key",
			"1").Items[0]
	}
	mine := send("root", body)
	require.Equal(t, contract.CodeIdempotencyKeyReused, f.refuse("root", http.MethodPost, jobBatchPath, body+" ",
		"Idempotency-Key", "1").Code)
	require.Equal(t, contract.CodeValidationFailed, send("other", strings.Replace(body, `"command"`,
		`"dependencies":[{"job_id":"`+mine.JobID+`"}],"command"`, 1)).Code, "another's job is none")
	require.Equal(t, http.StatusNotFound, f.refuse("other", http.MethodGet, "/v1/jobs/"+mine.JobID, "").Status)
	require.Empty(t, ask[contract.List[contract.Job]](f.world, "other", http.MethodGet, "/v1/jobs", "").Items)
}

// What docs/jobs.md shows of a batch is taken.
func TestTheBatchOfTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/jobs.md")
	require.NoError(t, err)
	_, text, found := bytes.Cut(text, []byte("### Many different jobs at once\n"))
	require.True(t, found)
	_, text, _ = bytes.Cut(text, []byte("```text\n"))
	lines, _, found := bytes.Cut(text, []byte("```\n"))
	require.True(t, found)
	f := newJobFleet(t)
	body := strings.ReplaceAll(string(lines), `"lab"`, `"`+f.pool+`"`)
	out := f.send("root", http.MethodPost, jobBatchPath, body, "Content-Type", "application/x-ndjson",
		"Idempotency-Key", "docs")
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	got := readJobResults(t, "application/x-ndjson", out.Body.String())
	require.Len(t, got, 2)
	require.Equal(t, "a", f.job(got[0].JobID).Name)
	require.Equal(t, 10, got[1].Jobs)
}
