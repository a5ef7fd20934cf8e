package jobs_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/jobs"
	"github.com/forewarm/forewarm/node/jobs/jobstest"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// server keeps output as the control plane does.
type server struct {
	mu     sync.Mutex
	away   error
	pieces map[contract.JobKey][]contract.JobOutputData
	has    map[contract.JobKey]int64
	lose   int64 // bytes that it forgets after the next part
	parts  int
}

var errAway = errors.New("the server is away")

func (s *server) store(_ context.Context, jobID string, p contract.JobOutputPart) (contract.JobOutputStored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return contract.JobOutputStored{}, s.away
	}
	s.parts++
	key := contract.JobKey{JobID: jobID, Attempt: p.Attempt}
	size, at := 0, p.Offset
	for _, piece := range p.Pieces {
		end := at + int64(len(piece.Data))
		if skip := s.has[key] - at; skip >= 0 && end > s.has[key] {
			piece.Data = piece.Data[skip:]
			s.pieces[key], s.has[key] = append(s.pieces[key], piece), end
		}
		size, at = size+len(piece.Data), end
		if len(piece.Data) > 64<<10 || len(p.Pieces) > 256 || size > 512<<10 {
			return contract.JobOutputStored{}, errors.New("it is more than a part may have")
		}
	}
	if s.lose > 0 {
		last := s.pieces[key][len(s.pieces[key])-1]
		last.Data = last.Data[:int64(len(last.Data))-s.lose]
		s.pieces[key][len(s.pieces[key])-1], s.has[key] = last, s.has[key]-s.lose
		s.lose = 0
	}
	return contract.JobOutputStored{NextOffset: s.has[key]}, nil
}

// set changes what the server does.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// got is what a job wrote to a stream; all of it for no stream.
func (s *server) got(key contract.JobKey, stream string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, p := range s.pieces[key] {
		if stream == "" || p.Stream == stream {
			text.Write(p.Data)
		}
	}
	return text.String()
}

// node is one whose daemon the test is.
type node struct {
	*testing.T
	dir    string
	server *server
	runner []string
	holds  *hold.Keeper
	keeper *jobs.Keeper
	now    time.Time
	// patience is how long a job may take.
	patience time.Duration
}

func newNode(t *testing.T) *node {
	t.Helper()
	return newNodeWith(t, hold.Config{})
}

func newNodeWith(t *testing.T, cfg hold.Config) *node {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-jobs-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	n := &node{T: t, dir: dir, patience: 2 * time.Minute, runner: jobstest.Runner(),
		now:    time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC),
		server: &server{pieces: map[contract.JobKey][]contract.JobOutputData{}, has: map[contract.JobKey]int64{}}}
	n.holds, err = hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Grace: time.Minute,
		Launcher: launchtest.Launcher(), Bounds: cfg.Bounds, Containers: cfg.Containers})
	require.NoError(t, err)
	n.begin()
	t.Cleanup(func() {
		n.holds.EndAll()
		for _, r := range n.keeper.Reports() {
			n.await(func() bool { return n.runnerOf(r.JobKey) == 0 })
		}
		n.keeper.Close()
	})
	return n
}

// begin begins the daemon, again if it was there before.
func (n *node) begin() {
	n.Helper()
	if n.keeper != nil {
		n.keeper.Close()
	}
	n.open(jobs.Config{Holds: n.holds})
}

func (n *node) open(cfg jobs.Config) {
	n.Helper()
	var err error
	n.keeper, err = jobs.Open(n.Context(), n.complete(cfg))
	require.NoError(n, err)
}

func (n *node) complete(cfg jobs.Config) jobs.Config {
	cfg.Dir, cfg.Runner, cfg.Store = filepath.Join(n.dir, "jobs"), n.runner, n.server.store
	cfg.Hurry, cfg.Log = func() {}, slog.New(slog.DiscardHandler)
	cfg.SendEvery = cmp.Or(cfg.SendEvery, time.Millisecond)
	return cfg
}

// alc is an allocation of this process alone: without rights of its own a keeper ends all processes on the machine that
// bear the allocation's name, those of another package's tests, too.
func alc(n int) string { return fmt.Sprintf("alc_%d_%d", os.Getpid(), n) }

// order is a job with a script.
func order(script string) contract.JobOrder {
	return contract.JobOrder{JobKey: contract.JobKey{JobID: "job_1", Attempt: 1}, Rank: 2, AllocationID: alc(1),
		GPUUUIDs: []string{"GPU-1"}, GPUIndices: []int{3}, Command: []string{"sh", "-c", script},
		MaxRuntimeSeconds: 600, GraceSeconds: 10}
}

// answer has the daemon heed the answer to a report, some time after the last one.
func (n *node) answer(after time.Duration, orders ...contract.JobOrder) {
	n.now = n.now.Add(after)
	n.keeper.Heed(orders, nil, n.now)
}

func (n *node) await(what func() bool) {
	n.Helper()
	require.Eventually(n, what, n.patience, 5*time.Millisecond)
}

// report is what a heartbeat says of an attempt.
func (n *node) report(key contract.JobKey) contract.JobReport {
	for _, r := range n.keeper.Reports() {
		if r.JobKey == key {
			return r
		}
	}
	return contract.JobReport{}
}

// awaitEnd waits until an attempt is reported as ended, and returns the report without its time.
func (n *node) awaitEnd(key contract.JobKey) contract.JobReport {
	n.Helper()
	n.await(func() bool { return n.report(key).State == contract.JobRankEnded })
	r := n.report(key)
	r.JobKey, r.State, r.Rank, r.RanSeconds, r.EndedSecondsAgo, r.PeakMemoryBytes = contract.JobKey{}, "", 0, 0, 0, 0
	return r
}

// forgetHolds has holds that are ending be proved, told and forgotten.
func (n *node) forgetHolds() {
	n.Helper()
	n.await(func() bool {
		n.holds.Look(contract.NodeLook{Source: "simulated", GPUs: []contract.LookGPU{}}, time.Now())
		return len(n.holds.Cleaned()) > 0 && !n.holds.AwaitsLook()
	})
	n.holds.End(nil)
	require.Empty(n, n.holds.Cleaned())
}

// run runs a job to its end.
func (n *node) run(o contract.JobOrder) contract.JobReport {
	n.Helper()
	n.answer(0, o)
	return n.awaitEnd(o.JobKey)
}

func (n *node) folder(key contract.JobKey) string {
	return filepath.Join(n.dir, "jobs", fmt.Sprintf("%s-%d", key.JobID, key.Attempt))
}

// runnerOf is the process that runs an attempt, and has its lock; 0: none.
func (n *node) runnerOf(key contract.JobKey) int {
	all, err := filepath.Glob("/proc/[0-9]*/fd/*")
	require.NoError(n, err)
	for _, file := range all {
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		require.NoError(n, err)
		if to, _ := os.Readlink(file); to == filepath.Join(n.folder(key), "lock") && pid != os.Getpid() {
			return pid
		}
	}
	return 0
}

// isBeingStarted reports whether somebody holds the lock of an attempt that is being started.
func (n *node) isBeingStarted(key contract.JobKey) bool {
	f, err := os.Open(filepath.Join(n.folder(key), "begin"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// newPipe makes a pipe in the folder of the test for which a job waits.
func (n *node) newPipe(name string) string {
	path := filepath.Join(n.dir, name)
	require.NoError(n, exec.Command("mkfifo", "-m", "666", path).Run())
	return path
}
