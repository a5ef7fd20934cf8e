package slurm_test

import (
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

// elasticLab is a fake elastic cluster with an observer of it, on one clock.
type elasticLab struct {
	lab
	*slurm.Observed
	spoil []func(*slurm.Config)
}

const (
	fakeSuspend = 5 * time.Minute
	fakeBoot    = 40 * time.Second
)

// newElasticLab has that many cold nodes of 4 GPUs.
func newElasticLab(t *testing.T, nodes int, change func(*world), spoil ...func(*slurm.Config)) *elasticLab {
	t.Helper()
	w := world{Now: start, Nodes: fakeNodes(nodes), Boot: fakeBoot, Elastic: elastic{On: true, Until: start,
		Suspend: fakeSuspend, ResumeTimeout: 90 * time.Second, MinJobAge: fakeMinJobAge, Private: "cloud"}}
	for _, n := range w.Nodes {
		n.Power.State = "cold"
	}
	if change != nil {
		change(&w)
	}
	l := &elasticLab{lab: lab{folder: newWorld(t, w), clock: clock.NewManual(start)}, spoil: spoil}
	l.open(t)
	return l
}

func (l *elasticLab) open(t *testing.T) provisioners.Provisioner {
	t.Helper()
	c := testConfig(l.folder)
	for _, spoil := range l.spoil {
		spoil(&c)
	}
	var err error
	l.Observed, err = slurm.NewObserved(c, l.clock)
	require.NoError(t, err)
	return l.Observed
}

// subject is the cluster for the suite of every provisioner.
func (l *elasticLab) subject(t *testing.T, machines int) provisionertest.Subject {
	return provisionertest.Subject{
		Provisioner: l.Observed, Reopen: l.open,
		Spec: provisioners.Spec{Type: "a100-4"}, OtherSpec: provisioners.Spec{Type: "a100-2"}, Machines: machines,
		Advance:    func(d time.Duration) { l.advanceClock(t, d) },
		BootWithin: 2 * time.Minute, GoneWithin: time.Minute,
		TimeOutCreate: l.armFault(t, "sbatch times out"),
		TimeOutDelete: l.armFault(t, "scancel times out"),
		TruncateList:  l.armFault(t, "squeue truncated"),
		FailCreate:    l.armFault(t, "sbatch standby"),
		FailDelete:    l.armFault(t, "scancel unreachable"),
		IgnoreDelete:  l.armFault(t, "scancel ignored"),
		Throttle:      func(calls int) { l.mustUpdate(t, func(w *world) { w.Faults["throttle"] = calls }) },
		Foreign:       func() func() bool { return l.addForeignBeats(t) },
		Histories:     played,
	}
}

// addForeignBeats adds jobs that are none of ours: a heartbeat of another provisioner of
// our user, and work that calls itself one.
func (l *elasticLab) addForeignBeats(t *testing.T) func() bool {
	t.Helper()
	theirs := map[int]bool{}
	l.mustUpdate(t, func(w *world) {
		for _, j := range []fakeJob{
			{User: "me", Name: "forewarm-0123456789abcdef-h",
				Comment: "forewarm:n=nod_1&o=deployment-a&p=elsewhere&t=token-1&v=heartbeat&w=x9&y=a100-4"},
			{User: "me", Name: "train", Comment: "forewarm:n=nod_1&o=deployment-a&p=slurm&t=token-1&v=heartbeat&w=x9&y=a100-4"},
		} {
			j.elasticJob = elasticJob{Begin: w.Now.Add(1000 * time.Hour), CPUs: 1, Count: 1}
			theirs[w.submitJob(j).ID] = true
		}
	})
	return func() bool {
		stand := 0
		l.mustUpdate(t, func(w *world) {
			for _, j := range w.Jobs {
				if theirs[j.ID] && j.State == "PENDING" {
					stand++
				}
			}
		})
		return stand == len(theirs)
	}
}

func TestObservedConformance(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"cold": nil,
		"up": func(w *world) {
			for _, n := range w.Nodes {
				n.Power = fakePower{State: "up", Busy: start}
			}
		},
		"powered up by an administrator": func(w *world) { w.Elastic.Admin = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
				return newElasticLab(t, 4, func(w *world) {
					w.Elastic.Suspend = 0 // this suite does not keep
					if change != nil {
						change(w)
					}
				}).subject(t, 4)
			}})
		})
	}
}

func (l *elasticLab) submit(t *testing.T, p provisionertest.PlainWork) string {
	t.Helper()
	var id int
	l.mustUpdate(t, func(w *world) {
		cpus := 1
		if p.Whole {
			cpus = fakeCPUs
		}
		id = w.submitJob(fakeJob{User: "ada", Name: "train", Partition: "gpu", Gres: "gpu:a100", GPUs: p.GPUs,
			elasticJob: elasticJob{Account: "vision", CPUs: cpus, Count: p.Nodes, Exclusive: p.Whole, Begin: w.Now}}).ID
	})
	return strconv.Itoa(id)
}

func (l *elasticLab) finish(t *testing.T, handle string) {
	l.changeJob(t, handle, func(j *fakeJob, w *world) {
		if j.State == "PENDING" {
			j.endAt("CANCELLED", w.Now)
		} else {
			j.endAt("COMPLETED", w.Now)
		}
	})
}

func (l *elasticLab) runs(t *testing.T, handle string) bool {
	runs := false
	l.changeJob(t, handle, func(j *fakeJob, _ *world) { runs = j.State == "RUNNING" })
	return runs
}

// beats counts the heartbeats that were submitted.
func (l *elasticLab) beats(t *testing.T) int {
	count := 0
	l.mustUpdate(t, func(w *world) {
		for _, call := range w.Calls {
			if strings.HasPrefix(call, "sbatch ") {
				count++
			}
		}
	})
	return count
}

func TestObserverConformance(t *testing.T) {
	t.Parallel()
	for name, admin := range map[string]bool{"heartbeats": false, "power": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provisionertest.RunObserver(t, provisionertest.ObserverHarness{
				New: func(t *testing.T) provisionertest.ObserverSubject {
					l := newElasticLab(t, 4, func(w *world) { w.Elastic.Admin = admin })
					return provisionertest.ObserverSubject{
						Subject: l.subject(t, 4), SuspendWithin: fakeSuspend + 10*time.Second,
						Submit:        func(p provisionertest.PlainWork) string { return l.submit(t, p) },
						Finish:        func(handle string) { l.finish(t, handle) },
						Runs:          func(handle string) bool { return l.runs(t, handle) },
						Forget:        func() { l.advanceClock(t, fakeMinJobAge+time.Second) },
						TruncateQueue: l.armFault(t, "queue truncated"),
						BreakBoot: func() {
							l.mustUpdate(t, func(w *world) {
								for _, n := range w.Nodes {
									n.Power.Broken = true
								}
							})
						},
						Beats: func() int { return l.beats(t) }, MostBeats: 36,
					}
				},
			})
		})
	}
}
