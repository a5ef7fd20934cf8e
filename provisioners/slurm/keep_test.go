package slurm_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

func (l *elasticLab) create(t *testing.T, token string) provisioners.Instance {
	t.Helper()
	made, err := l.Observed.Create(t.Context(), token, specNamed("a100-4"))
	require.NoError(t, err)
	return made
}

func specNamed(kind string) provisioners.Spec {
	return provisioners.Spec{Type: kind, Owner: "dep", NodeID: "nod_1"}
}

// warm creates a node in keeping, and lets it boot.
func (l *elasticLab) warm(t *testing.T, token string) provisioners.Instance {
	t.Helper()
	made := l.create(t, token)
	l.advanceClock(t, fakeBoot+2*time.Second)
	made, err := l.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, made.Phase)
	return made
}

func (l *elasticLab) called(t *testing.T, part string) int {
	t.Helper()
	count := 0
	l.mustUpdate(t, func(w *world) {
		for _, call := range w.Calls {
			if strings.Contains(call, part) {
				count++
			}
		}
	})
	return count
}

func (l *elasticLab) resumed(t *testing.T) (nodes []string) {
	t.Helper()
	l.mustUpdate(t, func(w *world) { nodes = w.Elastic.Resumed })
	return nodes
}

// A heartbeat is what the manual says of it, and nothing that could take a GPU or run twice.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, nil, func(c *slurm.Config) {
		c.Warm, c.Account, c.ExtraArgs = slurm.WarmHeartbeat, "ml", []string{"--nice=500"}
	})
	l.create(t, "token-1")
	var sent []string
	l.mustUpdate(t, func(w *world) {
		for _, call := range w.Calls {
			if strings.HasPrefix(call, "sbatch ") {
				sent = append(sent, call)
			}
		}
	})
	require.Len(t, sent, 2, "one that boots, and one ahead")
	for _, call := range sent {
		for _, option := range []string{"--nodelist=n0 ", "--ntasks=1 ", "--mem=1 ", "--time=2 ", "--no-requeue ", "--nice ",
			"--account=ml ", "v=heartbeat", "w=n0"} {
			require.Contains(t, call, option)
		}
		require.NotContains(t, call, "gres")
	}
	require.NotContains(t, sent[0], "--begin")
	require.Contains(t, sent[1], "--begin=now+100 ")
}

// POWER_UP is tried once an hour while it is refused, and never repeated during a boot.
func TestRights(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 4, nil)
	means := func() slurm.Means {
		m, err := l.Means(t.Context())
		require.NoError(t, err)
		return m
	}
	require.Equal(t, slurm.WarmAuto, means().Warm)
	require.InDelta(t, 36, means().HeartbeatsPerHour, 0.1)
	first := l.create(t, "token-1")
	l.create(t, "token-2")
	require.Equal(t, 1, l.called(t, "POWER_UP"), "it was refused")
	require.Equal(t, slurm.WarmHeartbeat, means().Warm)
	require.Equal(t, 4, means().Submitted)
	for _, id := range []string{first.ID} {
		require.NoError(t, l.Observed.Delete(t.Context(), id))
	}
	l.mustUpdate(t, func(w *world) { w.Elastic.Admin = true })
	l.advanceClock(t, time.Hour)
	made := l.create(t, "token-3")
	require.Equal(t, provisioners.Booting, made.Phase)
	require.Equal(t, 2, l.called(t, "POWER_UP"))
	for range 5 {
		l.advanceClock(t, 5*time.Second)
		require.Equal(t, made.ID, l.create(t, "token-3").ID)
		require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	}
	require.Equal(t, 2, l.called(t, "POWER_UP"))
	require.Equal(t, slurm.WarmPowerUp, means().Warm)

	never := newElasticLab(t, 1, func(w *world) { w.Elastic.Admin = true },
		func(c *slurm.Config) { c.Warm = slurm.WarmHeartbeat })
	never.create(t, "token-1")
	require.Zero(t, never.called(t, "POWER_UP"))
}

// A boot that failed ends the instance; the next token gets another node, and with none
// left the error says which ones are broken and how they are brought back.
func TestBrokenNodes(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, func(w *world) {
		for _, n := range w.Nodes {
			n.Power.Broken = true
		}
	})
	for i, token := range []string{"token-1", "token-2"} {
		host := []string{"n0", "n1"}[i]
		made := l.create(t, token)
		l.advanceClock(t, 100*time.Second)
		for range 2 { // the first look ends its heartbeats
			got, err := l.Observed.Get(t.Context(), made.ID)
			require.NoError(t, err)
			require.Equal(t, provisioners.Terminated, got.Phase)
			require.NotNil(t, got.Notice, "nothing says why")
			require.Contains(t, got.Notice.Message, "scontrol update NodeName="+host+" State=RESUME")
		}
	}
	require.Equal(t, []string{"n0", "n1"}, l.resumed(t))
	_, err := l.Observed.Create(t.Context(), "token-3", specNamed("a100-4"))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err))
	require.ErrorContains(t, err, "ResumeTimeout reached")
	require.ErrorContains(t, err, "scontrol update NodeName=n1 State=RESUME")
}

// An answer that leaves a kept node out, with success, says nothing about the node: its
// heartbeats stay.
func TestCutNodes(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, nil)
	made := l.warm(t, "token-1")
	l.advanceClock(t, 2*time.Minute)
	l.armFault(t, "nodes cut")()
	_, err := l.Observed.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	require.ErrorContains(t, err, "leaves node n0 out")
	got, err := l.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
}

// Two processes that choose at the same moment end with one node for the token.
func TestTwoProcessesWarmOneNode(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 4, nil)
	others := make([]*elasticLab, 4)
	for i := range others {
		others[i] = &elasticLab{lab: l.lab, spoil: []func(*slurm.Config){func(c *slurm.Config) { c.StateFile = "" }}}
		others[i].open(t)
	}
	ids, errs := make([]string, len(others)), make([]error, len(others))
	var group sync.WaitGroup
	for i, other := range others {
		group.Go(func() {
			made, err := other.Observed.Create(t.Context(), "token-1", specNamed("a100-4"))
			ids[i], errs[i] = made.ID, err
		})
	}
	group.Wait()
	for i := range others {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	l.advanceClock(t, fakeBoot+2*time.Second)
	seen, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	kept := 0
	for _, n := range seen.Nodes {
		if n.InstanceID != "" {
			kept++
		}
	}
	require.Equal(t, 1, kept)
	l.advanceClock(t, time.Second)
	_, err = l.Observed.List(t.Context(), "dep")
	require.NoError(t, err)
	hosts := map[string]bool{}
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if j.State == "PENDING" {
				hosts[j.On] = true
			}
		}
	})
	require.Len(t, hosts, 1, "the others' heartbeats stay")
}

// What a heartbeat waits for in vain is told, before the node is suspended.
func TestHeartbeatThatDoesNotRun(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, nil)
	made := l.warm(t, "token-1")
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if j.State == "PENDING" {
				j.Hosts, j.Count, j.Begin = nil, 9, w.Now // it never finds that many
			}
		}
	})
	l.advanceClock(t, 101*time.Second)
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			j.Reason = "QOSMaxJobsPerUserLimit"
		}
	})
	err := l.Keep(t.Context(), []string{made.ID})
	require.Error(t, err)
	require.ErrorContains(t, err, "has waited since")
}

// Once the node is up, the heartbeat that booted it ends before slurmctld launches it: the
// node is free for who wants all of it, and is kept by the heartbeat ahead.
func TestBootHeartbeatEndsWithTheBoot(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, func(w *world) { w.Elastic.Round = time.Hour })
	made := l.warm(t, "token-1")
	job := l.submit(t, provisionertest.PlainWork{GPUs: 4, Nodes: 1, Whole: true})
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			switch {
			case strconv.Itoa(j.ID) == job:
				require.Equal(t, "RUNNING", j.State)
			case strings.HasSuffix(j.Name, "-b"):
				require.True(t, j.isOver(), j.State)
			default:
				require.Equal(t, "PENDING", j.State)
			}
		}
	})
	l.finish(t, job)
	for range 30 {
		require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
		l.advanceClock(t, 10*time.Second)
	}
	require.Equal(t, []string{"n0"}, l.resumed(t), "it was suspended")
	got, err := l.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
}

// The heartbeat that booted a node stays while no other is ahead: it alone says whose the
// node is, and keeps it.
func TestBootHeartbeatStaysWhileItIsAlone(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, func(w *world) { w.Elastic.Round = time.Hour })
	made := l.create(t, "token-1")
	l.mustUpdate(t, func(w *world) {
		w.Jobs = slices.DeleteFunc(w.Jobs, func(j *fakeJob) bool { return strings.HasSuffix(j.Name, "-h") })
	})
	l.advanceClock(t, fakeBoot+2*time.Second)
	for range 2 {
		got, err := l.Observed.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Running, got.Phase)
	}
	require.Zero(t, l.called(t, "scancel"))
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	_, err := l.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, 1, l.called(t, "scancel"))
}

// An administrator's scancel is the switch that ends a keeping.
func TestScancelEndsKeeping(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, nil)
	made := l.warm(t, "token-1")
	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			if j.State == "PENDING" {
				j.endAt("CANCELLED", w.Now)
			}
		}
	})
	got, err := l.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(l.Keep(t.Context(), []string{made.ID})))
}

// What the second of two submissions is refused leaves nothing behind that lives on.
func TestRefusedHeartbeat(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, nil)
	l.armFault(t, "sbatch limit")()
	_, err := l.Observed.Create(t.Context(), "token-1", specNamed("a100-4"))
	require.Equal(t, provisioners.KindQuota, provisioners.KindOf(err))
	list, err := l.Observed.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Empty(t, list.Instances)
}

// Clusters that cannot be observed say so, with what to change.
func TestClustersThatCannotBeKept(t *testing.T) {
	t.Parallel()
	create := func(change func(*world), spoil ...func(*slurm.Config)) error {
		_, err := newElasticLab(t, 2, change, spoil...).Observed.Create(t.Context(), "token-1", specNamed("a100-4"))
		return err
	}
	err := create(func(w *world) { w.Elastic.Suspend = 5 * time.Second })
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "SuspendTime is 5s")
	err = create(func(w *world) { w.Elastic.Private = "none" })
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "PrivateData=cloud")
	err = create(func(w *world) { w.Elastic.Suspend, w.Elastic.Off = 0, true })
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "SuspendTime is infinite")
	constrained := func(constraint string) func(*slurm.Config) {
		return func(c *slurm.Config) { c.Offers[0].Constraint = constraint }
	}
	featured := func(w *world) { w.Nodes[1].Power.Features = "nvlink,ib" }
	require.NoError(t, create(featured, constrained("nvlink&ib")))
	require.NoError(t, create(featured, constrained("h100|ib")))
	err = create(featured, constrained("nvlink&h100"))
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "nvlink&h100")
}

// Where other users' jobs are hidden, taken GPUs that nothing explains show that an
// observation is not complete.
func TestHiddenJobs(t *testing.T) {
	t.Parallel()
	for private, complete := range map[string]bool{"cloud": true, "cloud,jobs": false} {
		l := newElasticLab(t, 2, func(w *world) { w.Elastic.Private = private })
		seen, err := l.Observe(t.Context(), "")
		require.NoError(t, err)
		require.True(t, seen.Complete, "nothing is there to be hidden")
		l.submit(t, provisionertest.PlainWork{GPUs: 4, Nodes: 1})
		seen, err = l.Observe(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, complete, seen.Complete)
		require.False(t, seen.More, "the next look sees no more")
		if complete {
			require.Equal(t, []string{"vision", "ada", "gpu"}, []string{seen.Work[0].Account, seen.Work[0].User,
				seen.Work[0].Queue})
		}
	}
}

func TestObservedConfig(t *testing.T) {
	t.Parallel()
	observed := func(spoil func(*slurm.Config)) func(*slurm.Config) {
		return func(c *slurm.Config) {
			c.Use = slurm.UseObserved
			spoil(c)
		}
	}
	for want, spoil := range map[string]func(*slurm.Config){
		`use: "both" is not reserved or observed`: func(c *slurm.Config) { c.Use = "both" },
		`warm: "sun" is not auto or heartbeat`:    func(c *slurm.Config) { c.Warm = "sun" },
		`warm: is for use: observed only`:         func(c *slurm.Config) { c.Warm = slurm.WarmHeartbeat },
		`extra_args[0]: --nodelist cannot be used`: observed(func(c *slurm.Config) {
			c.ExtraArgs = []string{"--nodelist=x"}
		}),
		`daemon: nothing of ours runs`:       observed(func(c *slurm.Config) { c.Daemon.Program = "/usr/bin/forewarm-node" }),
		`queue_when_full: nothing is queued`: observed(func(c *slurm.Config) { c.QueueWhenFull = true }),
		`offers[0].constraint: "[a*2]" is`:   observed(func(c *slurm.Config) { c.Offers[0].Constraint = "[a*2]" }),
		`offers[1].interruptible: nothing`:   observed(func(c *slurm.Config) { c.Offers[1].Interruptible = true }),
	} {
		c := testConfig(folder(t.TempDir()))
		spoil(&c)
		require.ErrorContains(t, c.WithDefaults().Validate(), want)
	}
}
