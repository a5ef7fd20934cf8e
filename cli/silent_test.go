package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// listener lets a test wait until somebody was told something.
type listener struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	some chan struct{}
}

func (h *listener) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.once.Do(func() { close(h.some) })
	return h.text.Write(p)
}

// A server that takes a request and says nothing: the person hears of it before time is up, and what was submitted may
// have been.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	errs := &listener{some: make(chan struct{})}
	listening := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-errs.some
		panic(http.ErrAbortHandler)
	}))
	defer listening.Close()
	root := newRoot(app.World{Version: "1.2.3", Clock: w.clock, Terminal: func(any) bool { return false },
		SlowAfter: time.Millisecond, Pause: func(context.Context, time.Duration) error { return nil },
		Getenv: func(name string) string { return map[string]string{"FOREWARM_API": listening.URL}[name] }})
	root.SetArgs([]string{"sbatch", "--wrap", "true"})
	root.SetErr(errs)
	require.Equal(t, exit.Failed, Execute(t.Context(), root))
	said := errs.text.String()
	require.True(t, strings.HasPrefix(said, listening.URL+" has not answered yet; still waiting for it.\n"), said)
	require.Contains(t, said, "the job may have been submitted: see, before you submit it again\n"+
		"Next:  forewarm jobs list --mine\n")
}

// What is said of a job that was told to end is no name of somebody who ended it, and who waits is told that it ends.
func TestAJobThatEndsIsSaidToEnd(t *testing.T) {
	t.Parallel()
	stops, over := newJob(contract.JobRunning, 1), endedWith(1, 0)
	stops.Ending = &contract.JobEnding{Then: "requeued", For: "job_9", KillAt: monday}
	w, _ := newJobServer(t, stops, stops, over)
	require.Contains(t, w.mustRun("jobs", "list"), "requeued for job_9, KILL at 2026-03-02T08:00:00Z")
	_, errs, code := w.runCommand("wait", "job_1")
	require.Zero(t, code, errs)
	require.Equal(t, "job_1  ending\njob_1  completed\n", errs)
}
