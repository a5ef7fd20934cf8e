package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/scheduler"
)

func hours(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }

// want is a job of one node: so many GPUs, for so many hours at most.
func want(id string, gpus int, limit float64, changes ...func(*scheduler.Job)) scheduler.Job {
	j := scheduler.Job{ID: id, Tenant: "a", MaxRuntime: hours(limit), Eligible: noon,
		Request: placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: gpus}}}
	for _, change := range changes {
		change(&j)
	}
	return j
}

func of(tenant string) func(*scheduler.Job)  { return func(j *scheduler.Job) { j.Tenant = tenant } }
func by(user string) func(*scheduler.Job)    { return func(j *scheduler.Job) { j.User = user } }
func class(name string) func(*scheduler.Job) { return func(j *scheduler.Job) { j.Class = name } }
func submitted(h float64) func(*scheduler.Job) {
	return func(j *scheduler.Job) { j.Eligible = noon.Add(hours(h)) }
}
func predicted(h float64) func(*scheduler.Job) {
	return func(j *scheduler.Job) { j.Predicted = hours(h) }
}
func keepsWork(j *scheduler.Job) { j.Preemptible, j.Checkpoint = true, time.Minute }
func losesWork(j *scheduler.Job) { j.Preemptible = true }

// newScheduler has nodes of four GPUs.
func newScheduler(t *testing.T, p scheduler.Policy, nodes int) *scheduler.Scheduler {
	t.Helper()
	var all []placement.Node
	for i := range nodes {
		all = append(all, placement.Node{ID: fmt.Sprint("n", i), Kind: placement.Kind{GPUs: 4}})
	}
	s, err := scheduler.New(p, all)
	require.NoError(t, err)
	return s
}

func submit(t *testing.T, s *scheduler.Scheduler, jobs ...scheduler.Job) {
	t.Helper()
	for _, j := range jobs {
		require.NoError(t, s.Submit(j, j.Eligible))
	}
}

func started(d scheduler.Decision) []string {
	var ids []string
	for _, s := range d.Starts {
		ids = append(ids, s.Job)
	}
	return ids
}

var levels = map[string]scheduler.Class{"high": {Level: 1}, "low": {Level: -1}}

// Each order as a table: of two jobs that want the one node, who gets it.
func TestWhoIsServedFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order         scheduler.Order
		first, second scheduler.Job
	}{
		"arrival: who came first": {scheduler.Arrival, want("b", 4, 9, submitted(-2)), want("a", 1, 1, submitted(-1))},
		"arrival: a higher class": {scheduler.Arrival, want("b", 4, 9, class("high")),
			want("a", 4, 1, submitted(-1))},
		"shortest: the least GPU-time": {scheduler.ShortestPredicted, want("b", 1, 3), want("a", 4, 1, submitted(-9))},
		"shortest: predictions count, not limits": {scheduler.ShortestPredicted, want("b", 4, 9, predicted(1)),
			want("a", 4, 2)},
		"multifactor: of the same tenant, the older": {scheduler.Multifactor, want("b", 4, 9, submitted(-2)),
			want("a", 4, 1, submitted(-1))},
		"balanced: of the same size, who waited longer": {scheduler.Balanced, want("b", 4, 1, submitted(-2)),
			want("a", 4, 1, submitted(-1))},
		"balanced: of the same wait, who asks less": {scheduler.Balanced, want("b", 3, 1), want("a", 4, 1)},
		"balanced: a long wait for much":            {scheduler.Balanced, want("b", 4, 4, submitted(-3)), want("a", 4, 1)},
		"balanced: a class before any wait": {scheduler.Balanced, want("b", 4, 9),
			want("a", 4, 1, submitted(-3), class("low"))},
		"balanced: who is overdue, before its class": {scheduler.Balanced, want("b", 4, 9, submitted(-49)),
			want("a", 4, 1, submitted(-40))},
		"balanced: who is overdue, before a lower class": {scheduler.Balanced, want("b", 4, 9, submitted(-49)),
			want("a", 4, 1, class("low"), submitted(-99))},
		"balanced: a higher class, before who is overdue": {scheduler.Balanced, want("b", 4, 9, class("high")),
			want("a", 4, 1, submitted(-49))},
		"attained: who ran less": {scheduler.LeastAttained, want("b", 4, 9),
			want("a", 4, 1, submitted(-5), func(j *scheduler.Job) { j.Attained = hours(3) })},
		"balanced: who ran less": {scheduler.Balanced, want("b", 4, 9),
			want("a", 4, 1, submitted(-5), func(j *scheduler.Job) { j.Attained = hours(3) })},
	} {
		for _, jobs := range [][]scheduler.Job{{tc.first, tc.second}, {tc.second, tc.first}} {
			s := newScheduler(t, scheduler.Policy{Order: tc.order, Classes: levels, Promises: 1}, 1)
			submit(t, s, jobs...)
			require.Equal(t, "b", started(s.Cycle(noon))[0], name)
		}
	}
}

// Whoever had much lately comes after who had little, in both orders that know of shares.
func TestFairShare(t *testing.T) {
	t.Parallel()
	for _, order := range []scheduler.Order{scheduler.Balanced, scheduler.Multifactor} {
		s := newScheduler(t, scheduler.Policy{Order: order, ShareWeight: 1,
			FairShare: fairshare.Policy{HalfLife: time.Hour}}, 1)
		submit(t, s, want("1", 4, 2, submitted(-2)))
		s.Cycle(noon.Add(-hours(2)))
		require.True(t, s.Finish("1", noon))
		submit(t, s, want("2", 4, 2, submitted(-0.02)), want("3", 4, 2, of("b")))
		require.Equal(t, []string{"3"}, started(s.Cycle(noon)), order)
	}
}

// Of the users of a tenant, too, who had much comes after who had little. Beside other tenants nobody gains by that:
// what all users of a tenant had counts against each.
func TestFairShareOfUsers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ first, second scheduler.Job }{
		"who had less of what their tenant had": {want("3", 4, 2, by("bob")), want("2", 4, 2, submitted(-0.02), by("ann"))},
		"another tenant, before who is new in one that had much": {want("3", 4, 2, of("b")),
			want("2", 4, 2, submitted(-0.02), by("bob"))},
		"who had much, where nobody else of their tenant has jobs": {want("2", 4, 2, submitted(-0.02), by("ann")),
			want("3", 4, 2, by("ann"))},
	} {
		for _, order := range []scheduler.Order{scheduler.Balanced, scheduler.Multifactor} {
			s := newScheduler(t, scheduler.Policy{Order: order, ShareWeight: 1,
				FairShare: fairshare.Policy{HalfLife: time.Hour}}, 1)
			submit(t, s, want("1", 4, 2, submitted(-2), by("ann")))
			s.Cycle(noon.Add(-hours(2)))
			require.True(t, s.Finish("1", noon))
			submit(t, s, tc.first, tc.second)
			require.Equal(t, []string{tc.first.ID}, started(s.Cycle(noon)), "%s: %s", order, name)
		}
	}
}

// Who came back keeps their place among those that are alike, in what is told of the order, too.
func TestTheOrderIsThatOfACycle(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Default(), 1)
	submit(t, s, want("1", 4, 1), want("2", 4, 1), want("3", 4, 1))
	require.Equal(t, []string{"1"}, started(s.Cycle(noon)))
	require.True(t, s.Requeue("1", noon.Add(time.Minute), time.Time{}))
	require.Equal(t, []string{"1", "2", "3"}, s.Order(noon.Add(time.Minute)))
}

// Whoever submits a job behind a colleague's hundred is not served after all of them.
func TestNobodyFloodsTheirColleagues(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Default(), 1)
	for i := range 100 {
		submit(t, s, want(fmt.Sprintf("ann's %03d", i), 1, 1, by("ann"), submitted(-1)))
	}
	running := started(s.Cycle(noon.Add(-hours(1))))
	require.Len(t, running, 4)
	submit(t, s, want("bob's", 1, 1, by("bob")))
	require.True(t, s.Finish(running[0], noon))
	require.True(t, s.Finish(running[1], noon))
	require.ElementsMatch(t, []string{"ann's 004", "bob's"}, started(s.Cycle(noon)), "the first one was promised that")
}

func TestATenantsLimit(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Promises: 2, Tenants: map[string]scheduler.Tenant{"a": {MostGPU: 3}}}, 2)
	submit(t, s, want("1", 2, 1), want("2", 2, 1, submitted(1)), want("3", 1, 1, submitted(2)),
		want("4", 4, 1, of("b"), submitted(2)))
	d := s.Cycle(noon.Add(hours(2)))
	require.ElementsMatch(t, []string{"1", "3", "4"}, started(d))
	require.Equal(t, scheduler.TenantLimit, d.Blocked[0].Blocker)
	require.Empty(t, d.Promised)
}

// Nothing is done for a job that fits nowhere, and nobody waits behind it.
func TestAnUnplaceableJobHoldsUpNobody(t *testing.T) {
	t.Parallel()
	p := scheduler.Policy{Order: scheduler.Arrival, Classes: levels, Promises: 4,
		Preemption: scheduler.Preemption{Enabled: true, LoseWork: true}}
	s := newScheduler(t, p, 1)
	submit(t, s, want("running", 3, 9, losesWork))
	s.Cycle(noon)
	submit(t, s, want("huge", 5, 1, class("high")), want("small", 1, 1))
	d := s.Cycle(noon)
	require.Equal(t, []string{"small"}, started(d))
	require.Empty(t, d.Plans)
	require.Empty(t, d.Promised)
	require.Equal(t, scheduler.Blocker(placement.NoMatch), d.Blocked[0].Blocker)
}

// A short job goes before a large one that waits, and only if it is over in time.
func TestBackfill(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Arrival, Promises: 1}, 1)
	submit(t, s, want("running", 2, 2))
	s.Cycle(noon)
	submit(t, s, want("large", 4, 1), want("long", 1, 3, submitted(0.1)), want("short", 1, 1, submitted(0.1)))
	d := s.Cycle(noon.Add(hours(0.1)))
	require.Equal(t, []string{"short"}, started(d))
	require.Equal(t, noon.Add(hours(2)), d.Promised[0].From)
	require.True(t, s.Finish("running", noon.Add(hours(1))))
	d = s.Cycle(noon.Add(hours(1)))
	require.Equal(t, noon.Add(hours(1.1)), d.Promised[0].From, "something ended early: the promise moves up")
	require.True(t, s.Finish("short", noon.Add(hours(1.1))))
	require.Equal(t, []string{"large"}, started(s.Cycle(noon.Add(hours(1.1)))))
}

// With EASY backfill the promise belongs to whoever is first at the time.
func TestEasyPromisesAreMadeAnew(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Arrival, Classes: levels, Promises: 1, Easy: true}, 1)
	submit(t, s, want("running", 4, 2))
	s.Cycle(noon)
	submit(t, s, want("first", 4, 1))
	require.Equal(t, "first", s.Cycle(noon).Promised[0].ID)
	submit(t, s, want("higher", 4, 1, class("high")))
	require.Equal(t, "higher", s.Cycle(noon).Promised[0].ID)
}

func TestADrainedNodeBreaksItsPromise(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Promises: 1}, 1)
	submit(t, s, want("running", 4, 2))
	s.Cycle(noon)
	submit(t, s, want("1", 4, 1))
	require.Len(t, s.Cycle(noon).Promised, 1)
	require.True(t, s.SetCondition("n0", placement.Condition{Drained: true}, noon))
	d := s.Cycle(noon)
	require.Equal(t, []string{"1"}, d.Broken)
	require.Empty(t, d.Promised)
	require.NoError(t, s.AddNodes(placement.Node{ID: "new", Kind: placement.Kind{GPUs: 4}}))
	require.Equal(t, []string{"1"}, started(s.Cycle(noon)))
	require.Error(t, s.AddNodes(placement.Node{ID: "new", Kind: placement.Kind{GPUs: 4}}))
	require.False(t, s.SetCondition("z", placement.Condition{}, noon))
}

// A large job starts although small ones come all the time, as soon as what ran when
// it became overdue is over.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Balanced, Promises: 1, Overdue: hours(4)}, 2)
	large := want("large", 4, 100)
	large.Request.Shape.Nodes = 2
	submit(t, s, want("0", 1, 1, submitted(-1)))
	s.Cycle(noon.Add(-time.Hour / 2))
	submit(t, s, large)
	for minute := 0; ; minute += 10 {
		now := noon.Add(time.Duration(minute) * time.Minute)
		require.Less(t, minute, 5*60+11, "it is overdue after 4 hours, and nothing runs for longer than one")
		for _, r := range s.Snapshot().Running {
			if !r.Until.After(now) {
				s.Finish(r.ID, now)
			}
		}
		for i := range 3 {
			small := want(fmt.Sprint(minute, "-", i), 1, 1)
			small.Eligible = now
			submit(t, s, small)
		}
		for _, id := range started(s.Cycle(now)) {
			if id == "large" {
				return
			}
		}
	}
}

// In the cycle in which an overdue job begins that was promised that, the next one is promised nothing yet: what is
// free goes to everybody by their turn.
func TestOneOverdueJobIsServedInACycle(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Balanced, Promises: 1, Overdue: hours(4)}, 2)
	submit(t, s, want("runs", 4, 9), want("runs, too", 4, 9))
	require.Len(t, s.Cycle(noon).Starts, 2)
	submit(t, s, want("a", 4, 9, submitted(-9)), want("b", 4, 8, submitted(-8)), want("other", 1, 7, of("b")))
	promised := func(d scheduler.Decision) (ids []string) {
		for _, p := range d.Promised {
			ids = append(ids, p.ID)
		}
		return ids
	}
	require.Equal(t, []string{"a"}, promised(s.Cycle(noon.Add(hours(1)))))
	s.Finish("runs", noon.Add(hours(2)))
	d := s.Cycle(noon.Add(hours(2)))
	require.Equal(t, []string{"a"}, started(d))
	require.Empty(t, promised(d))
	require.Equal(t, []string{"b"}, promised(s.Cycle(noon.Add(hours(2)))))
}

// Whatever a higher class is promised, nobody of its own class or a lower one goes on before a job that is overdue.
func TestOverdueIsServedInItsClass(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Classes: levels, Promises: 1}, 2)
	whole := want("overdue", 4, 9, submitted(-49))
	both := want("above", 4, 9, class("high"))
	both.Request.Shape.Nodes = 2
	submit(t, s, want("1", 3, 2, submitted(-50)), want("2", 4, 4, submitted(-50)))
	require.Len(t, s.Cycle(noon.Add(-hours(1))).Starts, 2)
	submit(t, s, whole, both, want("small", 1, 2), want("below", 1, 2, class("low")), want("short", 1, 0.5))
	d := s.Cycle(noon)
	require.Equal(t, []string{"short"}, started(d), "it is over before what is promised to the two")
	require.Len(t, d.Promised, 2)
	require.Equal(t, "above", d.Promised[0].ID)
	require.Equal(t, "overdue", d.Promised[1].ID)
	require.True(t, d.Promised[0].Until.Equal(d.Promised[1].From), "the higher class does not wait for it")
}

func TestWhoMayWait(t *testing.T) {
	t.Parallel()
	p := scheduler.Policy{MostWaiting: 3, Rate: queue.Rate{Every: time.Minute, Burst: 2, Daily: 3}}
	s := newScheduler(t, p, 1)
	refused := func(j scheduler.Job, now time.Time) scheduler.RefusedError {
		var e *scheduler.RefusedError
		require.ErrorAs(t, s.Submit(j, now), &e)
		require.ErrorContains(t, e, string(e.Reason))
		return *e
	}
	submit(t, s, want("1", 4, 1), want("2", 4, 1))
	require.Equal(t, scheduler.RefusedError{Job: "3", Reason: scheduler.RefusedRate, Opens: noon.Add(time.Minute)},
		refused(want("3", 4, 1), noon))
	require.Equal(t, scheduler.RefusedDuplicate, refused(want("1", 4, 1), noon).Reason)
	require.NoError(t, s.Submit(want("3", 4, 1), noon.Add(time.Minute)))
	require.Equal(t, scheduler.RefusedFull, refused(want("4", 4, 1), noon.Add(time.Hour)).Reason)
	require.True(t, s.Cancel("3"))
	require.False(t, s.Cancel("3"))
	require.Equal(t, scheduler.RefusedDaily, refused(want("4", 4, 1), noon.Add(time.Hour)).Reason)
	other := want("5", 4, 1, func(j *scheduler.Job) { j.User = "other" })
	require.NoError(t, s.Submit(other, noon), "the rate is of each user")
	require.Equal(t, scheduler.RefusedInvalid, refused(want("6", 0, 1), noon).Reason)
	require.Equal(t, 3, s.Waiting())
}

func TestAJobWaitsForItsTime(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{}, 1)
	later := func(j *scheduler.Job) { j.NotBefore = noon.Add(time.Hour) }
	submit(t, s, want("1", 1, 1, later), want("2", 1, 1, later))
	require.Empty(t, s.Cycle(noon.Add(time.Hour-1)).Starts)
	require.Equal(t, 2, s.Waiting())
	require.True(t, s.Cancel("2"))
	require.Equal(t, []string{"1"}, started(s.Cycle(noon.Add(time.Hour))))
	require.Equal(t, noon.Add(time.Hour), s.Snapshot().Running[0].Eligible, "until then it did not wait")
	require.True(t, s.Requeue("1", noon.Add(time.Hour), noon.Add(2*time.Hour)), "its start failed")
	require.Empty(t, s.Cycle(noon.Add(time.Hour)).Starts)
	require.Len(t, s.Cycle(noon.Add(2*time.Hour)).Starts, 1)
	require.False(t, s.Requeue("3", noon, noon))
	require.False(t, s.Finish("3", noon))
}
