package slurm_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// fakeNodes is a partition gpu with that many nodes of 4 GPUs.
func fakeNodes(count int) []*fakeNode {
	nodes := make([]*fakeNode, count)
	for i := range nodes {
		nodes[i] = &fakeNode{Name: "n" + strconv.Itoa(i), Partition: "gpu", State: "idle", Gres: "gpu:a100", GPUs: 4}
	}
	return nodes
}

func testConfig(f folder) slurm.Config {
	return slurm.Config{
		BinDir: string(f), StateFile: filepath.Join(string(f), "slurm.json"),
		Offers: []slurm.Offer{
			{Type: "a100-4", Partition: "gpu", Gres: "gpu:a100", Model: "a100-80g", GPUs: 4, MemoryMiB: 81_920},
			{Type: "a100-2", Partition: "gpu", Gres: "gpu:a100", Model: "a100-80g", GPUs: 2, MemoryMiB: 81_920},
		},
	}
}

// lab is a fake cluster with an adapter to it, on one clock.
type lab struct {
	folder
	*slurm.Cluster
	clock *clock.Manual
}

func newLab(t *testing.T, w world, spoil ...func(*slurm.Config)) lab {
	t.Helper()
	w.Now = start
	l := lab{folder: newWorld(t, w), clock: clock.NewManual(start)}
	l.openCluster(t, spoil...)
	return l
}

func (l *lab) openCluster(t *testing.T, spoil ...func(*slurm.Config)) {
	t.Helper()
	c := testConfig(l.folder)
	for _, spoil := range spoil {
		spoil(&c)
	}
	var err error
	l.Cluster, err = slurm.New(c, l.clock)
	require.NoError(t, err)
}

func (l lab) advanceClock(t *testing.T, d time.Duration) {
	t.Helper()
	l.mustUpdate(t, func(w *world) { w.Now = l.clock.Advance(d) })
}

func (l lab) changeJob(t *testing.T, id string, do func(*fakeJob, *world)) {
	t.Helper()
	number, _, _ := strings.Cut(id, "-")
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if strconv.Itoa(j.ID) == number {
				do(j, w)
			}
		}
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		l := newLab(t, world{Nodes: fakeNodes(6), Boot: 40 * time.Second, Probe: 5 * time.Second})
		return provisionertest.Subject{
			Provisioner: l.Cluster,
			Reopen: func(t *testing.T) provisioners.Provisioner {
				l.openCluster(t)
				return l.Cluster
			},
			Spec: provisioners.Spec{Type: "a100-4"}, OtherSpec: provisioners.Spec{Type: "a100-2"}, Machines: 6,
			Advance:    func(d time.Duration) { l.advanceClock(t, d) },
			BootWithin: 2 * time.Minute, GoneWithin: time.Minute,
			TimeOutCreate: l.armFault(t, "sbatch times out"),
			TimeOutDelete: l.armFault(t, "scancel times out"),
			TruncateList:  l.armFault(t, "squeue truncated"),
			FailCreate:    l.armFault(t, "sbatch standby"),
			FailDelete:    l.armFault(t, "scancel unreachable"),
			IgnoreDelete:  l.armFault(t, "scancel ignored"),
			Throttle:      func(calls int) { l.mustUpdate(t, func(w *world) { w.Faults["throttle"] = calls }) },
			Foreign:       func() func() bool { return l.addForeignJobs(t) },
			Reclaim: func(id string) {
				l.changeJob(t, id, func(j *fakeJob, w *world) {
					j.Preempted, j.Ends = w.Now,
						w.Now.Add(30*time.Second)
				})
			},
			Now:       l.clock.Now,
			Histories: played,
		}
	}})
}

// addForeignJobs adds jobs that are none of ours: another user's, one of our user with
// a comment like ours, and a placeholder of another provisioner.
func (l lab) addForeignJobs(t *testing.T) func() bool {
	t.Helper()
	theirs := map[int]bool{}
	l.mustUpdate(t, func(w *world) {
		for _, j := range []fakeJob{
			{User: "other", Name: "train"},
			{User: "me", Name: "train\nmore\n", Comment: "forewarm:t=token-1&o=deployment-a&n=nod_1&p=slurm&y=a100-4"},
			{User: "me", Name: "forewarm-0123456789abcdef",
				Comment: "forewarm:t=token-1&o=deployment-a&n=nod_1&p=elsewhere&y=a100-4"},
		} {
			w.Next++
			j.ID, j.Partition, j.State, j.Submitted = w.Next, "cpu", "RUNNING", w.Now
			j.Started, j.Node, j.Reported = w.Now, "c1", true
			theirs[j.ID] = true
			w.Jobs = append(w.Jobs, &j)
		}
	})
	return func() bool {
		stand := 0
		l.mustUpdate(t, func(w *world) {
			for _, j := range w.Jobs {
				if theirs[j.ID] && j.State == "RUNNING" || theirs[j.ID] && j.State == "CONFIGURING" {
					stand++
				}
			}
		})
		return stand == len(theirs)
	}
}
