package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

func (l lab) createInstance(t *testing.T, token, kind string) provisioners.Instance {
	t.Helper()
	made, err := l.Create(t.Context(), token, testSpec(kind, "nod_1"))
	require.NoError(t, err)
	return made
}

func (l lab) getInstance(t *testing.T, id string) provisioners.Instance {
	t.Helper()
	got, err := l.Get(t.Context(), id)
	require.NoError(t, err)
	return got
}

func (l lab) requireRefusal(t *testing.T, kind provisioners.Kind, token, machine string) {
	t.Helper()
	_, err := l.Create(t.Context(), token, testSpec(machine, "nod_1"))
	require.Error(t, err)
	require.Equal(t, kind, provisioners.KindOf(err), "%v", err)
}

// A placeholder that gets no node is ended in time, and one whose node boots is
// not.
func TestPendingTimeout(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(1), Boot: time.Hour}, func(c *slurm.Config) { c.QueueWhenFull = true })
	boots := l.createInstance(t, "token-1", "a100-4")
	waits := l.createInstance(t, "token-2", "a100-4")
	l.advanceClock(t, 10*time.Minute)
	require.Equal(t, provisioners.Booting, l.getInstance(t, waits.ID).Phase)
	l.advanceClock(t, time.Second)
	require.Equal(t, provisioners.Terminating, l.getInstance(t, waits.ID).Phase)
	ended := l.getInstance(t, waits.ID)
	require.Equal(t, provisioners.Terminated, ended.Phase)
	require.Equal(t, l.clock.Now(), ended.EndedAt)
	require.Equal(t, provisioners.Booting, l.getInstance(t, boots.ID).Phase)
}

// Room is counted by GPUs of nodes, with our own that wait; a node that Slurm
// hides because it has no power is room, too.
func TestRoom(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: append(fakeNodes(1), &fakeNode{Name: "cloud", Partition: "gpu", State: "idle",
		Gres: "gpu:a100", GPUs: 4, Hidden: true})})
	l.createInstance(t, "token-1", "a100-2")
	l.createInstance(t, "token-2", "a100-4")
	l.createInstance(t, "token-3", "a100-2")
	l.requireRefusal(t, provisioners.KindCapacity, "token-4", "a100-2")
	l.mustUpdate(t, func(w *world) { w.Nodes[0].Gres = "gpu:h100" })
	l.mustUpdate(t, func(w *world) { w.Nodes[1].Gres = "gpu:h100" })
	l.requireRefusal(t, provisioners.KindBadSpec, "token-4", "a100-2")
	l.mustUpdate(t, func(w *world) { w.Nodes = nil })
	l.requireRefusal(t, provisioners.KindBadSpec, "token-4", "a100-2")
	_, err := l.Offers(t.Context())
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))

	whole := newLab(t, world{Nodes: fakeNodes(1)}, func(c *slurm.Config) {
		c.Offers[0].Exclusive, c.Offers[0].GPUs = true,
			2
	})
	whole.createInstance(t, "token-1", "a100-4")
	whole.mustUpdate(t, func(w *world) { w.Nodes[0].State = "mixed" })
	whole.requireRefusal(t, provisioners.KindCapacity, "token-2", "a100-4")
}

// A job of ours that somebody has changed stops what depends on it and nothing
// else.
func TestJobThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*fakeJob){
		"another comment": func(j *fakeJob) { j.Comment = "hands off" },
		"another token":   func(j *fakeJob) { j.Comment = strings.Replace(j.Comment, "token-1", "token-9", 1) },
		"no node id":      func(j *fakeJob) { j.Comment = strings.Replace(j.Comment, "n=nod_1", "n=", 1) },
		"bad report":      func(j *fakeJob) { j.Comment = strings.Replace(j.Comment, "&g=", "&g=x,", 1) },
		"unknown state":   func(j *fakeJob) { j.State, j.Ended = "DREAMING", start },
	} {
		l := newLab(t, world{Nodes: fakeNodes(4)})
		bad, good := l.createInstance(t, "token-1", "a100-2"), l.createInstance(t, "token-2", "a100-2")
		l.changeJob(t, bad.ID, func(j *fakeJob, _ *world) { spoil(j) })
		list, err := l.List(t.Context(), "dep")
		require.NoError(t, err, name)
		require.False(t, list.Complete, name)
		require.Len(t, list.Instances, 1, name)
		_, err = l.Get(t.Context(), bad.ID)
		require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%s: %v", name, err)
		l.requireRefusal(t, provisioners.KindUnknown, "token-1", "a100-2")
		require.Equal(t, good.ID, l.createInstance(t, "token-2", "a100-2").ID, name)
		l.createInstance(t, "token-3", "a100-2")
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(1)}, func(c *slurm.Config) { c.Offers[1].NameContains = "H100" })
	id := l.createInstance(t, "token-1", "a100-2").ID
	running := l.getInstance(t, id)
	require.Nil(t, running.Notice)
	require.Equal(t, "NVIDIA A100-SXM4-80GB", running.Devices[0].Model,
		"what was not ordered keeps its name, for the health gate")
	l.changeJob(t, id, func(j *fakeJob, _ *world) {
		j.Comment = strings.Replace(j.Comment, ":81559:0&", ":81559:3&",
			1)
	})
	require.Equal(t, "3 uncorrected ECC errors when the machine started", l.getInstance(t, id).Notice.Message)
	l.mustUpdate(t, func(w *world) { w.Nodes[0].State = "mixed+drain" })
	require.Equal(t, "node n0 is mixed+drain: none", l.getInstance(t, id).Notice.Message)
	end := start.Add(16 * time.Minute)
	l.changeJob(t, id, func(j *fakeJob, _ *world) { j.Ends = end })
	require.Equal(t, provisioners.NoticeDegraded, l.getInstance(t, id).Notice.Kind)
	l.advanceClock(t, time.Minute)
	require.Equal(t, &provisioners.Notice{Kind: provisioners.NoticeExpiring, At: end, Message: "the job's time limit"},
		l.getInstance(t, id).Notice)
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(2)})
	forever := l.createInstance(t, "token-1", "a100-2")
	require.NoError(t, l.Renew(t.Context(), forever.ID, start.Add(time.Minute)))
	l.advanceClock(t, time.Hour)
	require.Equal(t, provisioners.Running, l.getInstance(t, forever.ID).Phase, "never is later than any time")

	limited := testSpec("a100-2", "nod_2")
	limited.ExpiresAt = l.clock.Now().Add(time.Minute)
	made, err := l.Create(t.Context(), "token-2", limited)
	require.NoError(t, err)
	l.changeJob(t, made.ID, func(j *fakeJob, _ *world) {
		require.Regexp(t, `^forewarm-[0-9a-f]{16}-x1772445660$`,
			j.Name)
	})
	until := limited.ExpiresAt.Add(time.Hour)
	require.NoError(t, l.Renew(t.Context(), made.ID, until))
	l.changeJob(t, made.ID, func(j *fakeJob, _ *world) { require.Regexp(t, `-x1772449260$`, j.Name) })
	for _, id := range []string{"99-0123456789abcdef", "x"} {
		require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(l.Renew(t.Context(), id, until)))
	}
}

// A token is known for a day after its machine's end, and not for ever; two
// processes on one host share what they know.
func TestForgetting(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(1)})
	made := l.createInstance(t, "token-1", "a100-2")
	neighbour := l
	neighbour.openCluster(t)
	require.NoError(t, l.Delete(t.Context(), made.ID))
	require.Equal(t, provisioners.Terminating, l.getInstance(t, made.ID).Phase)
	l.advanceClock(t, time.Minute)
	ended := l.getInstance(t, made.ID)
	l.advanceClock(t, 10*time.Minute)
	require.Equal(t, ended, l.getInstance(t, made.ID), "Slurm has forgotten it")
	l.advanceClock(t, 24*time.Hour)
	require.Equal(t, ended, neighbour.createInstance(t, "token-1", "a100-2"))
	l.requireRefusal(t, provisioners.KindBadSpec, "token-1", "a100-4")
	l.advanceClock(t, 2*time.Hour)
	require.NotEqual(t, made.ID, l.createInstance(t, "token-1", "a100-2").ID)
	_, err := l.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
}

// A machine that ended and was forgotten while nobody looked has ended all the
// same.
func TestEndThatNobodySaw(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(1)})
	made := l.createInstance(t, "token-1", "a100-2")
	l.mustUpdate(t, func(w *world) { w.Jobs = nil })
	l.advanceClock(t, time.Minute)
	again := l.createInstance(t, "token-1", "a100-2")
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, provisioners.Terminated, again.Phase)
	require.True(t, again.EndedAt.IsZero(), "nobody knows when")
	require.Equal(t, provisioners.Terminated, l.getInstance(t, made.ID).Phase)
}

// A machine that could not be remembered is not confirmed, also not by the
// repeat, until it is; reading goes on.
func TestUnsavedMachineIsNotConfirmed(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(4)})
	file := filepath.Join(string(l.folder), "slurm.json")
	unblock := statefiletest.Block(t, file)
	for range 2 {
		l.requireRefusal(t, provisioners.KindUnknown, "token-1", "a100-2")
		list, err := l.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Len(t, list.Instances, 1)
	}
	unblock()
	l.createInstance(t, "token-1", "a100-2")
	require.Equal(t, 1, l.countHolding(t, "token-1"))

	for _, text := range []string{"", "{", `{"Version":2,"Machines":{}}`,
		`{"Version":1,"Machines":{"a":{"Token":"b"}}}`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := slurm.New(testConfig(l.folder), l.clock)
		require.ErrorContains(t, err, file, text)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*slurm.Config){
		"name":                       func(c *slurm.Config) { c.Name = "Not A Name" },
		"offers:":                    func(c *slurm.Config) { c.Offers = nil },
		"offers[1].type: \"a100-4\"": func(c *slurm.Config) { c.Offers[1].Type = "a100-4" },
		"offers[0].type":             func(c *slurm.Config) { c.Offers[0].Type = "-x" },
		"offers[0].partition":        func(c *slurm.Config) { c.Offers[0].Partition = "a,b" },
		"offers[0].gres":             func(c *slurm.Config) { c.Offers[0].Gres = "gpu:a100:4" },
		"offers[0].model":            func(c *slurm.Config) { c.Offers[0].Model = "" },
		"offers[0].gpus":             func(c *slurm.Config) { c.Offers[0].GPUs = 17 },
		"offers[0].constraint":       func(c *slurm.Config) { c.Offers[0].Constraint = "a b" },
		"offers[0].time_limit":       func(c *slurm.Config) { c.Offers[0].TimeLimit = time.Second },
		"offers[0].exclusive": func(c *slurm.Config) {
			c.Offers[0].Exclusive, c.Offers[0].CPUsPerGPU = true,
				1
		},
		"offers[0].memory_mib":        func(c *slurm.Config) { c.Offers[0].MemoryMiB = -1 },
		"offers[0].qos":               func(c *slurm.Config) { c.QOS = "a b" },
		"extra_args[0]":               func(c *slurm.Config) { c.ExtraArgs = []string{"--wrap=id"} },
		"extra_args[1]":               func(c *slurm.Config) { c.ExtraArgs = []string{"--nice=1", "--comment=x"} },
		"bin_dir":                     func(c *slurm.Config) { c.BinDir = "bin" },
		"slurm_conf":                  func(c *slurm.Config) { c.SlurmConf = "slurm.conf" },
		"timeout":                     func(c *slurm.Config) { c.Timeout = time.Millisecond },
		"probe_timeout":               func(c *slurm.Config) { c.ProbeTimeout = -1 },
		"pending_timeout":             func(c *slurm.Config) { c.PendingTimeout = -1 },
		"check_every":                 func(c *slurm.Config) { c.CheckEvery = -1 },
		"end_notice":                  func(c *slurm.Config) { c.EndNotice = -1 },
		"offers[0].price_per_hour":    func(c *slurm.Config) { c.Offers[0].Price = -1 },
		"offers[0].boot.p50: -1 is n": func(c *slurm.Config) { c.Offers[0].Boot.P50 = -1 },
	} {
		c := testConfig("/")
		c.StateFile = ""
		spoil(&c)
		_, err := slurm.New(c, clock.NewManual(start))
		require.ErrorContains(t, err, want)
	}
	c := testConfig("/")
	c.Timeout, c.Offers[0].GPUs, c.Offers[1].Model = -1, 0, ""
	_, err := slurm.New(c, clock.NewManual(start))
	for _, want := range []string{"timeout", "offers[0].gpus", "offers[1].model"} {
		require.ErrorContains(t, err, want, "all at once")
	}
}

// Tags that would leave no room for the devices are refused before anything is
// made of them.
func TestTagsThatAreTooLong(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(1)})
	long := testSpec("a100-4", "nod_1")
	long.Owner = strings.Repeat("d", 650)
	_, err := l.Create(t.Context(), "token-1", long)
	require.NoError(t, err)
	long.Owner = strings.Repeat("d", 800)
	_, err = l.Create(t.Context(), "token-2", long)
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
}

// A preemption that nothing announced is told with its end, also when Slurm has
// forgotten the job, and machines that others may take are looked at soon.
func TestAPreemptedPlaceholder(t *testing.T) {
	t.Parallel()
	l := newLab(t, world{Nodes: fakeNodes(2)}, func(c *slurm.Config) { c.Offers[0].Interruptible = true })
	taken, steady := l.createInstance(t, "token-1", "a100-4"), l.createInstance(t, "token-2", "a100-2")
	l.advanceClock(t, time.Minute)
	require.Equal(t, 10*time.Second, l.getInstance(t, taken.ID).CheckWithin)
	require.Zero(t, l.getInstance(t, steady.ID).CheckWithin, "nobody takes it")
	require.False(t, l.getInstance(t, taken.ID).Preempted)
	end := l.clock.Now()
	l.changeJob(t, taken.ID, func(j *fakeJob, w *world) { j.Ends = end }) // PreemptMode=CANCEL without GraceTime
	l.advanceClock(t, 5*time.Second)
	for range 2 {
		over := l.getInstance(t, taken.ID)
		require.Equal(t, provisioners.Terminated, over.Phase)
		require.True(t, over.Preempted)
		require.Equal(t, end, over.EndedAt.UTC())
		l.advanceClock(t, time.Hour) // Slurm forgets
	}
	require.NoError(t, l.Delete(t.Context(), steady.ID))
	l.advanceClock(t, time.Minute)
	require.False(t, l.getInstance(t, steady.ID).Preempted, "we ended it ourselves")
}
