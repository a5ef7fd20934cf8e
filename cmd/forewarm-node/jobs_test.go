package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// jobPlane is a control plane that orders one job until it is reported, keeps its output, and has it
// forgotten once it has ended.
type jobPlane struct {
	mu      sync.Mutex
	order   contract.JobOrder
	reports []contract.JobReport // each that says something new, without its time
	output  string
	busy    bool // a GPU did something
}

func (p *jobPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/heartbeat"):
		var b contract.Heartbeat
		_ = json.NewDecoder(r.Body).Decode(&b)
		_ = json.NewEncoder(w).Encode(p.answer(b))
	case strings.HasSuffix(r.URL.Path, "/nodes/nod_1/jobs/job_1/output"):
		var part contract.JobOutputPart
		_ = json.NewDecoder(r.Body).Decode(&part)
		at := part.Offset
		for _, piece := range part.Pieces {
			if at == int64(len(p.output)) { // what is here already may come again
				p.output += string(piece.Data)
			}
			at += int64(len(piece.Data))
		}
		_ = json.NewEncoder(w).Encode(contract.JobOutputStored{NextOffset: int64(len(p.output))})
	case strings.HasSuffix(r.URL.Path, "/join"), strings.HasSuffix(r.URL.Path, "/renew"):
		_ = json.NewEncoder(w).Encode(contract.NodeJoined{NodeID: "nod_1", Key: "key", ExpiresInSeconds: 60,
			HeartbeatSeconds: 1})
	default: // no sessions here
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *jobPlane) answer(b contract.Heartbeat) contract.HeartbeatAnswer {
	a := contract.HeartbeatAnswer{HeartbeatSeconds: 1}
	for _, g := range b.Look.GPUs {
		p.busy = p.busy || g.Utilization != nil && *g.Utilization > 0
	}
	if len(b.Jobs) == 0 && len(p.reports) == 0 {
		a.Jobs = []contract.JobOrder{p.order}
	}
	for _, r := range b.Jobs {
		if r.State == contract.JobRankEnded {
			a.ForgetJobs = append(a.ForgetJobs, r.JobKey)
		}
		r.RanSeconds, r.EndedSecondsAgo = 0, 0
		if len(p.reports) == 0 || p.reports[len(p.reports)-1] != r {
			p.reports = append(p.reports, r)
		}
	}
	return a
}

func (p *jobPlane) await(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return what()
	}, 2*time.Minute, 10*time.Millisecond)
}

// A job runs on when its daemon is killed, and when it is told to end; the next one finds it, what it wrote
// meanwhile and how it ended, and starts it no second time. It is so for holders who have the daemon's user, too.
func TestAJobOutlivesItsDaemon(t *testing.T) {
	users := []int{os.Getuid()}
	if users[0] == 0 {
		users = append(users, 65534)
	}
	for _, user := range users {
		t.Run(strconv.Itoa(user), func(t *testing.T) { outlive(t, newMachine(t, user)) })
	}
}

// alc is an allocation of this process alone: a daemon without users of its own for holders ends all processes on the
// machine that bear its name, those of another package's tests, too.
func alc() string { return fmt.Sprintf("alc_%d", os.Getpid()) }

// machine is where daemons of a user begin.
type machine struct {
	dir    string
	pipe   string // for which the job waits
	plane  *jobPlane
	daemon *exec.Cmd
	args   []string
}

func newMachine(t *testing.T, user int) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-node-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	m := &machine{dir: dir, pipe: filepath.Join(dir, "pipe")}
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // holders pass
	require.NoError(t, os.Chown(dir, user, -1))
	require.NoError(t, syscall.Mkfifo(m.pipe, 0o666))
	require.NoError(t, os.Chmod(m.pipe, 0o666)) //nolint:gosec // holders read it
	m.plane = &jobPlane{order: contract.JobOrder{JobKey: contract.JobKey{JobID: "job_1", Attempt: 3}, Rank: 1,
		AllocationID: alc(), MaxRuntimeSeconds: 600, GraceSeconds: 1,
		GPUUUIDs: []string{"GPU-PRETEND-1"}, GPUIndices: []int{0}, // of a provisioner that makes its own up
		Command: []string{"sh", "-c", "cat; cat " + m.pipe + "; cat " + m.pipe + "; echo end; exit 5"},
		Input:   slices.Repeat([]byte("up"), 1<<20)}} // more than an answer without jobs may have
	server := httptest.NewServer(m.plane)
	t.Cleanup(server.Close)
	m.args = []string{"run", "--url", server.URL, "--node", "nod_1", "--simulate", "1", "--shared-user",
		"--state-dir", filepath.Join(dir, "state"), "--hold-dir", filepath.Join(dir, "holds"), "--token-file", "-"}
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nomsgpack", "-o", dir+"/forewarm-node", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return m
}

// start starts a daemon of the folder's user.
func (m *machine) start(t *testing.T) {
	t.Helper()
	info, err := os.Stat(m.dir)
	require.NoError(t, err)
	m.daemon = exec.CommandContext(t.Context(), m.dir+"/forewarm-node", m.args...)
	if user := info.Sys().(*syscall.Stat_t).Uid; int(user) != os.Getuid() {
		m.daemon.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	m.daemon.Stdin, m.daemon.Stderr = strings.NewReader("token"), t.Output()
	require.NoError(t, m.daemon.Start())
}

func (m *machine) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, m.daemon.Process.Signal(syscall.SIGTERM))
	require.NoError(t, m.daemon.Wait())
}

func outlive(t *testing.T, m *machine) {
	t.Helper()
	m.start(t)
	m.plane.await(t, func() bool { return len(m.plane.output) == 2<<20 && m.plane.busy })
	require.NoError(t, m.daemon.Process.Kill())
	_ = m.daemon.Wait()
	require.NoError(t, os.WriteFile(m.pipe, []byte("alone\n"), 0)) // the job goes on with nobody there
	m.start(t)
	m.plane.await(t, func() bool { return strings.HasSuffix(m.plane.output, "upalone\n") })
	m.stop(t)
	require.NoError(t, os.WriteFile(m.pipe, []byte("alone again\n"), 0))
	m.start(t)
	m.plane.await(t, func() bool { return len(m.plane.reports) == 2 })
	require.Positive(t, m.plane.reports[1].PeakMemoryBytes)
	m.plane.reports[1].PeakMemoryBytes = 0
	require.Equal(t, []contract.JobReport{{JobKey: m.plane.order.JobKey, Rank: 1, State: "running"},
		{JobKey: m.plane.order.JobKey, Rank: 1, State: "ended", ExitCode: 5}}, m.plane.reports)
	require.Equal(t, "upalone\nalone again\nend\n", m.plane.output[2<<20-2:])
	require.Eventually(t, func() bool {
		left, err := os.ReadFile(filepath.Join(m.dir, "state", "jobs", ".job_1-3", "order.json"))
		return err == nil && len(left) == 0
	}, 2*time.Minute, 10*time.Millisecond, "it is forgotten")
	m.stop(t)
}

// A daemon whose sessions are turned off starts nothing, and says why.
func TestADaemonWithoutSessionsTakesNoJobs(t *testing.T) {
	p := &jobPlane{order: contract.JobOrder{JobKey: contract.JobKey{JobID: "job_1", Attempt: 1}, AllocationID: alc(),
		Command: []string{"true"}}}
	server := httptest.NewServer(p)
	defer server.Close()
	ended := make(chan int, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() {
		code, _ := command(ctx, "token", nil, "run", "--url", server.URL, "--node", "nod_1", "--simulate", "1",
			"--sessions=false", "--state-dir", filepath.Join(t.TempDir(), "state"), "--token-file", "-")
		ended <- code
	}()
	p.await(t, func() bool { return len(p.reports) > 0 && p.reports[len(p.reports)-1].State == "ended" })
	stop()
	require.Zero(t, <-ended)
	require.Equal(t, contract.JobReport{JobKey: p.order.JobKey, State: "ended", Code: "not_started",
		Reason: "the node takes no jobs: its daemon has sessions: false"}, p.reports[len(p.reports)-1])
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
