package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

func TestRequestsAboutJobs(t *testing.T) {
	t.Parallel()
	var got []string
	c := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.RequestURI())
		require.Equal(t, r.Method == http.MethodPost, r.Header.Get(contract.HeaderIdempotencyKey) != "")
		writeAnswer(w, http.StatusOK, struct{}{})
	})
	ctx := t.Context()
	_, err := c.SubmitJob(ctx, contract.JobCreate{Command: []string{"true"}}, client.Options{DryRun: true})
	require.NoError(t, err)
	_, err = c.SubmitJobs(ctx, []contract.JobCreate{{Command: []string{"true"}}}, client.Options{})
	require.NoError(t, err)
	for _, change := range []func() (contract.Job, error){
		func() (contract.Job, error) { return c.Job(ctx, "job_1") },
		func() (contract.Job, error) { return c.CancelJob(ctx, "job_1") },
		func() (contract.Job, error) { return c.RequeueJob(ctx, "job_1") },
		func() (contract.Job, error) { return c.HoldJob(ctx, "job_1") },
		func() (contract.Job, error) { return c.ReleaseJob(ctx, "job_1") },
	} {
		_, err := change()
		require.NoError(t, err)
	}
	for _, change := range []func(context.Context, contract.JobSet) (contract.JobsChanged, error){c.CancelJobs,
		c.RequeueJobs, c.HoldJobs, c.ReleaseJobs} {
		_, err := change(ctx, contract.JobSet{ArrayID: "arr_1"})
		require.NoError(t, err)
	}
	_, err = c.ExplainJob(ctx, "job_1")
	require.NoError(t, err)
	for _, f := range []client.JobFilter{{}, {Array: "arr_1", Mine: true, Filter: client.Filter{All: true, Pool: "lab"}},
		{Filter: client.Filter{State: []string{"failed"}, Name: "train"}}} {
		_, err := client.All(c.Jobs(ctx, f))
		require.NoError(t, err)
	}
	of := client.EventFilter{After: 7, Subject: "job_1"}
	_, err = c.FindEvents(ctx, of, 5)
	require.NoError(t, err)
	_, err = client.All(c.FollowEvents(ctx, of))
	require.Error(t, err, "it has ended")
	_, err = client.All(c.Queue(ctx, client.Filter{Pool: "lab", All: true}))
	require.NoError(t, err)
	require.Equal(t, []string{"POST /v1/jobs?dry_run=true", "POST /v1/jobs/batch",
		"GET /v1/jobs/job_1", "POST /v1/jobs/job_1/cancel",
		"POST /v1/jobs/job_1/requeue", "POST /v1/jobs/job_1/hold", "POST /v1/jobs/job_1/release",
		"POST /v1/jobs/cancel", "POST /v1/jobs/requeue", "POST /v1/jobs/hold", "POST /v1/jobs/release",
		"GET /v1/jobs/job_1/explain", "GET /v1/jobs", "GET /v1/jobs?all=true&array=arr_1&mine=true&pool=lab",
		"GET /v1/jobs?name=train&state=failed",
		"GET /v1/events?after=7&limit=5&subject=job_1", "GET /v1/events/stream?subject=job_1",
		"GET /v1/queue?limit=1000&pool=lab"}, got)
	require.True(t, client.IsJobOver(contract.JobFailed))
	require.False(t, client.IsJobOver(contract.JobPreempted))
}

// outputServer serves the output of a job, and cuts each connection but the last one.
type outputServer struct {
	pieces []contract.JobOutput
	each   int      // how many pieces a connection brings before it is cut
	back   int64    // how much each connection brings again
	asked  []string // the queries
}

func (s *outputServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.RawQuery)
	after, _ := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	sent := 0
	for _, p := range s.pieces {
		if p.Offset+int64(len(p.Data)) <= after-s.back {
			continue
		}
		if sent == s.each {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler) // as a connection that is cut
		}
		_ = json.NewEncoder(w).Encode(p)
		sent++
	}
}

// newOutput is output in pieces of six bytes.
func newOutput(text string) []contract.JobOutput {
	var all []contract.JobOutput
	for at := 0; at < len(text); at += 6 {
		all = append(all, contract.JobOutput{Attempt: 2, Offset: int64(at), Stream: "stdout",
			Data: []byte(text[at:min(at+6, len(text))])})
	}
	return all
}

func readAllOutput(t *testing.T, s *outputServer, q client.OutputQuery) (string, error) {
	t.Helper()
	c := newServer(t, s.ServeHTTP)
	var text strings.Builder
	for piece, err := range c.JobOutput(t.Context(), "job_1", q) {
		if err != nil {
			return text.String(), err
		}
		text.Write(piece.Data)
	}
	return text.String(), nil
}

// A stream that is cut goes on where it was, on the same attempt, and brings no byte twice.
func TestJobOutputResumesWhereItWasLeft(t *testing.T) {
	t.Parallel()
	const text = "the whole output of a job that goes on for a while"
	s := &outputServer{pieces: newOutput(text), each: 3, back: 4}
	got, err := readAllOutput(t, s, client.OutputQuery{Follow: true, Rank: 1})
	require.NoError(t, err)
	require.Equal(t, text, got)
	require.Equal(t, []string{"follow=true&rank=1", "attempt=2&follow=true&offset=18&rank=1"}, s.asked[:2])
	require.Greater(t, len(s.asked), 3)

	s = &outputServer{pieces: newOutput(text)[6:], each: 1}
	got, err = readAllOutput(t, s, client.OutputQuery{Tail: 14})
	require.NoError(t, err)
	require.Equal(t, text[36:], got)
	require.Equal(t, []string{"tail=14", "attempt=2&offset=42"}, s.asked[:2], "the tail is not counted anew")

	s = &outputServer{pieces: newOutput(text)[6:], each: 1}
	got, err = readAllOutput(t, s, client.OutputQuery{Since: time.Date(2026, 3, 2, 9, 0, 0, 5000, time.UTC)})
	require.NoError(t, err)
	require.Equal(t, text[36:], got)
	require.Equal(t, []string{"since=2026-03-02T09%3A00%3A00.000005Z", "attempt=2&offset=42"}, s.asked[:2],
		"it is known where it began")
}

// One that brings nothing new is the caller's to ask for again.
func TestJobOutputThatBringsNothingFails(t *testing.T) {
	t.Parallel()
	s := &outputServer{pieces: newOutput("some output"), each: 0}
	_, err := readAllOutput(t, s, client.OutputQuery{})
	require.Error(t, err)
	require.Len(t, s.asked, 1)

	s = &outputServer{pieces: newOutput("some output"), each: 1, back: 6}
	got, err := readAllOutput(t, s, client.OutputQuery{})
	require.ErrorContains(t, err, "reading the output of job_1")
	require.Equal(t, "some o", got)
	require.Len(t, s.asked, 2)

	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeAnswer(w, http.StatusNotFound, contract.NewProblem(contract.CodeNotFound, "no such job"))
	}))
	t.Cleanup(refused.Close)
	c, err := client.New(refused.URL, "", refused.Client())
	require.NoError(t, err)
	_, err = client.All(c.JobOutput(t.Context(), "job_1", client.OutputQuery{}))
	var e *client.Error
	require.ErrorAs(t, err, &e)
}
