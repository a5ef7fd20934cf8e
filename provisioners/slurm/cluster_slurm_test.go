//go:build slurm

package slurm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// real is one partition of the cluster that scripts/with-slurm has started: one
// node with four GPUs, for one test at a time. Its jobs are those of an ordinary
// user.
type real struct {
	*slurm.Cluster
	config slurm.Config
	faults string
}

// partitions are free until a test takes one.
var partitions = func() chan string {
	free := make(chan string, 4)
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		free <- name
	}
	return free
}()

var labs atomic.Int64

// faulty stands before every command and spoils the next one of a name, if a
// file says so: what goes wrong between us and Slurm.
const faulty = `#!/bin/sh
faults=$1
shift
strikes() { mv "$faults/$1" "$faults/struck" 2>/dev/null; }
complain() { echo "$*" >&2; exit 1; }
case " $* " in
*" sbatch "*)
	strikes "sbatch standby" &&
		complain "sbatch: error: Batch job submission failed: Slurm backup controller in standby mode"
	strikes "sbatch times out" && {
		"$@" >/dev/null
		complain "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
	} ;;
*" scancel "*)
	strikes "scancel unreachable" &&
		complain "scancel: error: Kill job error: Unable to contact slurm controller (connect failure)"
	strikes "scancel times out" && {
		"$@"
		complain "scancel: error: Kill job error: Socket timed out on send/recv operation"
	}
	strikes "scancel ignored" && exit 0 ;;
*" squeue --me "*)
	strikes "squeue truncated" && { "$@" | head -c 700; exit 0; } ;;
esac
exec "$@"
`

// realConfig offers two sizes of one partition.
func realConfig(t *testing.T, partition string) slurm.Config {
	t.Helper()
	dir := os.Getenv("FOREWARM_TEST_SLURM")
	require.NotEmpty(t, dir, "run it with scripts/with-slurm")
	faults := t.TempDir()
	require.NoError(t, forklock.WriteProgram(filepath.Join(faults, "faulty"), faulty))
	return slurm.Config{
		Name:          fmt.Sprint("lab-", labs.Add(1)),
		CommandPrefix: []string{filepath.Join(faults, "faulty"), faults, "runuser", "-u", "nobody", "--"},
		SlurmConf:     filepath.Join(dir, "slurm.conf"),
		StateFile:     filepath.Join(t.TempDir(), "slurm.json"),
		Probe:         []string{filepath.Join(dir, "nvidia-smi")},
		CheckEvery:    time.Second,
		Offers: []slurm.Offer{
			{Type: "two", Partition: partition, Gres: "gpu:a100", Model: "a100-80g", GPUs: 2, CPUsPerGPU: 1,
				NameContains: "A100"},
			{Type: "one", Partition: partition, Gres: "gpu:a100", Model: "a100-80g", GPUs: 1},
		},
	}
}

func newReal(t *testing.T, spoil ...func(*slurm.Config)) *real {
	t.Helper()
	partition := <-partitions
	r := &real{config: realConfig(t, partition)}
	r.faults = r.config.CommandPrefix[1]
	for _, spoil := range spoil {
		spoil(&r.config)
	}
	r.openCluster(t)
	t.Cleanup(func() {
		cancelPartitionJobs(t, partition)
		partitions <- partition
	})
	return r
}

func (r *real) openCluster(t *testing.T) provisioners.Provisioner {
	t.Helper()
	var err error
	r.Cluster, err = slurm.New(r.config, clock.System{})
	require.NoError(t, err)
	return r.Cluster
}

// runAsRoot runs one of Slurm's commands as root. It uses no context of the test's:
// it is also what cleans up.
func runAsRoot(t *testing.T, line ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput()
	require.NoError(t, err, "%v: %s", line, output)
	return string(output)
}

// patience is how long anything may take that Slurm does on a slow, busy machine.
const patience = 90 * time.Second

// waitUntil polls, and fails when it takes more than the limit.
func waitUntil(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, limit, 100*time.Millisecond, what)
}

// cancelPartitionJobs ends all jobs of the partition and waits until they are gone.
func cancelPartitionJobs(t *testing.T, partition string) {
	t.Helper()
	waitUntil(t, patience, "jobs do not end", func() bool {
		jobs := strings.Fields(runAsRoot(t, "squeue", "--noheader", "--partition="+partition, "--format=%A"))
		if len(jobs) > 0 {
			runAsRoot(t, append([]string{"scancel"}, jobs...)...)
		}
		return len(jobs) == 0
	})
}

// waitRealTime waits for real, and no longer than something can still happen.
func (r *real) waitRealTime(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) && !r.hasNoJobs(t); {
		time.Sleep(min(100*time.Millisecond, time.Until(end)))
	}
}

func (r *real) hasNoJobs(t *testing.T) bool {
	t.Helper()
	for job := range strings.Lines(runAsRoot(t, "squeue", "--noheader", "--partition="+r.config.Offers[0].Partition,
		"--format=%T %j %k")) {
		fields := strings.Fields(job)
		ours := strings.HasPrefix(fields[1], "forewarm-")
		if fields[0] != "RUNNING" || ours && (strings.Contains(fields[1], "-x") || !strings.Contains(job, "&g=")) {
			return false
		}
	}
	return true
}

func (r *real) armFault(t *testing.T, name string) func() {
	return func() { require.NoError(t, os.WriteFile(filepath.Join(r.faults, name), nil, 0o600)) }
}

func TestRealConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		r := newReal(t)
		return provisionertest.Subject{
			Provisioner: r.Cluster, Reopen: r.openCluster,
			Spec: provisioners.Spec{Type: "two"}, OtherSpec: provisioners.Spec{Type: "one"}, Machines: 2,
			Advance:    func(d time.Duration) { r.waitRealTime(t, d) },
			BootWithin: 15 * time.Second, GoneWithin: 15 * time.Second, Patience: 6,
			TimeOutCreate: r.armFault(t, "sbatch times out"),
			TimeOutDelete: r.armFault(t, "scancel times out"),
			TruncateList:  r.armFault(t, "squeue truncated"),
			FailCreate:    r.armFault(t, "sbatch standby"),
			FailDelete:    r.armFault(t, "scancel unreachable"),
			IgnoreDelete:  r.armFault(t, "scancel ignored"),
			Foreign:       func() func() bool { return r.createForeignJob(t) },
			Reclaim:       func(id string) { runAsRoot(t, "scancel", jobOf(id)) },
			Now:           clock.System{}.Now,
			Histories:     2,
		}
	}})
}

func jobOf(id string) string {
	number, _, _ := strings.Cut(id, "-")
	return number
}

// submitForeignJob submits a job that is no placeholder, as root or as the user.
func submitForeignJob(t *testing.T, args ...string) string {
	t.Helper()
	line := append([]string{"sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--wrap=sleep 300"}, args...)
	return strings.TrimSpace(runAsRoot(t, line...))
}

func (r *real) createForeignJob(t *testing.T) func() bool {
	t.Helper()
	id := submitForeignJob(t, "--uid=nobody", "--partition="+r.config.Offers[0].Partition,
		"--job-name=forewarm-0123456789abcdef",
		"--comment=forewarm:p=elsewhere&t=token-1&o=deployment-a&n=nod_1&y=two")
	return func() bool {
		state := strings.TrimSpace(runAsRoot(t, "squeue", "--noheader", "--states=all", "--jobs="+id, "--format=%T"))
		return state == "RUNNING" || state == "PENDING"
	}
}
