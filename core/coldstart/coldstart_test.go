package coldstart

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A node is powered down after five minutes, and boots within ten.
var assumed = Assumptions{SuspendTime: 300, BootLimit: 600}

var allDay = Period{Begin: 0, From: 0, Until: 86_400}

var plain = Options{WaitWorth: 8, KeepAlives: []int64{900, 3600}}

func onNode(id string, ready, start, end int64, nodes ...string) Job {
	return Job{ID: id, Submit: ready, Ready: ready, Start: start, End: end, Nodes: nodes, GPUs: len(nodes) * 4,
		Partition: "gpu"}
}

func evaluate(t *testing.T, jobs ...Job) Report {
	t.Helper()
	r, err := Evaluate(jobs, assumed, allDay, plain)
	require.NoError(t, err)
	return r
}

// A node that was unused for 1,000 s had been powered down after 300 of them.
func TestAColdNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := evaluate(t,
		onNode("1", 1000, 1045, 2000, "c1"), // unused since the history began
		onNode("2", 2200, 2201, 3000, "c1"), // 200 s after: still up
		onNode("3", 4000, 4060, 5000, "c1")) // 1,000 s after: down
	require.Equal(t, 3, r.Summary.Starts)
	require.Equal(t, 1, r.Summary.AtOnce)
	require.Equal(t, Waits{Starts: 2, P50: 45, P90: 60, Longest: 60, Seconds: 105, GPUSeconds: 420}, r.Summary.Boot)
	require.Equal(t, Boot{Seconds: 45, Basis: Measured, Seen: 2}, r.Boot)
	require.InDelta(t, (955+799+940)/3600.0, r.Summary.BusyNodeHours, 1e-9)
}

// Before the history covers a suspend time, nobody can tell.
func TestTheBeginningIsUntold(t *testing.T) {
	t.Parallel()
	r := evaluate(t, onNode("1", 100, 145, 2000, "c1"))
	require.Equal(t, Waits{Starts: 1, P50: 45, P90: 45, Longest: 45, Seconds: 45, GPUSeconds: 180}, r.Summary.Untold)
	require.Zero(t, r.Summary.Boot.Starts+r.Summary.Priority.Starts+r.Summary.AtOnce)
	require.Equal(t, AtMost, r.Boot.Basis)
	require.Empty(t, r.Policies, "nothing can be replayed without the length of a boot")
}

// What came at once needed no boot, whenever that was.
func TestAtOnceIsToldAtTheBeginning(t *testing.T) {
	t.Parallel()
	s := evaluate(t, onNode("1", 100, 101, 2000, "c1")).Summary
	require.Equal(t, []int{1, 0}, []int{s.AtOnce, s.Untold.Starts})
}

// The start of a job whose node still boots is that of its allocation: until a boot is
// certainly over, neither it nor one that joined it has started.
func TestAStartIsOpenWhileItsNodeMayBoot(t *testing.T) {
	t.Parallel()
	busy := onNode("0", 80_000, 80_045, 86_200, "c2")
	for _, c := range []struct {
		at           int64
		open, starts int
	}{{86_100, 2, 1}, {85_000, 0, 3}} {
		one, two := onNode("1", c.at, c.at, 0, "c1"), onNode("2", c.at+20, c.at+20, 0, "c1")
		s := evaluate(t, busy, one, two).Summary
		require.Equal(t, []int{c.open, c.starts}, []int{s.Open, s.Starts}, c.at)
		require.Equal(t, c.starts-1, s.AtOnce, "neither is an immediate start while it may wait")
	}
	up := onNode("3", 86_300, 86_300, 0, "c2")
	s := evaluate(t, busy, up).Summary
	require.Equal(t, []int{0, 1}, []int{s.Open, s.AtOnce}, "its node was up")
}

// A job that comes while a node boots for another one waits for the rest of the
// boot, and says nothing about how long a boot takes.
func TestAJobJoinsABoot(t *testing.T) {
	t.Parallel()
	second := onNode("2", 1030, 1046, 2000, "c1")
	r := evaluate(t, onNode("1", 1000, 1045, 2000, "c1"), second)
	require.Equal(t, 2, r.Summary.Boot.Starts)
	require.Equal(t, int64(45+15), r.Summary.Boot.Seconds)
	require.Equal(t, 1, r.Boot.Seen)
	require.Equal(t, int64(45+15), r.Policies[0].Waits.Seconds, "the replay of nothing says the same")
}

// A gang waits for its last node.
func TestAGangWithOneColdNode(t *testing.T) {
	t.Parallel()
	r := evaluate(t, onNode("1", 1000, 1040, 1900, "c1"), onNode("2", 2000, 2050, 3000, "c1", "c2"))
	require.Equal(t, 2, r.Summary.Boot.Starts)
	require.Equal(t, int64(50), r.Summary.Boot.Longest)
}

// What a job waited beyond the longest possible boot, it waited for something
// else; what the cluster said, or what ran on its node, tells for what.
func TestOtherWaitsAreToldApart(t *testing.T) {
	t.Parallel()
	limited := onNode("limited", 10_000, 12_000, 12_500, "c1")
	limited.Hold = Limit
	after := onNode("after", 20_000, 20_045, 21_000, "c1")
	after.Submit, after.Hold = 19_000, Dependency
	r := evaluate(t,
		onNode("first", 1000, 1050, 5000, "c1"),
		onNode("queued", 4000, 5001, 6000, "c1"), // its node was busy until it started
		onNode("overtaken", 6000, 6100, 6200, "c1"),
		limited, after)
	s := r.Summary
	require.Equal(t, 1, s.Resources.Starts)
	require.Equal(t, int64(1001), s.Resources.Longest)
	require.Equal(t, 1, s.Priority.Starts, "its node was up and free")
	require.Equal(t, 1, s.Limits.Starts)
	require.Equal(t, int64(2000-45), s.Limits.Longest, "less a boot")
	require.Equal(t, Waits{Starts: 1, P50: 1000, P90: 1000, Longest: 1000, Seconds: 1000, GPUSeconds: 4000}, s.Ineligible)
	require.Equal(t, 3, s.Boot.Starts, "the first, the limited one and the dependent one")
	require.Zero(t, s.AtOnce)
}

// Heartbeats keep their node up, and are no demand.
func TestOwnJobsAreNoEvidence(t *testing.T) {
	t.Parallel()
	jobs := []Job{onNode("1", 1000, 1045, 2000, "c1"), onNode("2", 4000, 4001, 5000, "c1")}
	require.Equal(t, 1, evaluate(t, jobs...).Summary.Refuted, "it should have been down")
	for at := int64(2100); at < 4000; at += 100 {
		beat := onNode("beat", at, at, at+1, "c1")
		beat.Own, beat.GPUs, beat.ID = true, 0, beat.ID+string(rune('a'+at/100))
		jobs = append(jobs, beat)
	}
	r := evaluate(t, jobs...)
	require.Equal(t, 2, r.Summary.Starts)
	require.Zero(t, r.Summary.Refuted)
	require.Equal(t, 19, r.Summary.Own)
	require.Equal(t, 1, r.Summary.AtOnce)
	require.InDelta(t, (955+999)/3600.0, r.Summary.BusyNodeHours, 1e-9)
}

// Nodes that stay up are never cold, and in no replay.
func TestStaticNodes(t *testing.T) {
	t.Parallel()
	a := assumed
	a.NodeSuspendTime, a.Boot = map[string]int64{"n1": Never}, 45
	r, err := Evaluate([]Job{onNode("1", 1000, 1045, 2000, "n1")}, a, allDay, plain)
	require.NoError(t, err)
	require.Equal(t, 1, r.Summary.StaysUp)
	require.Equal(t, 1, r.Summary.Priority.Starts)
	require.Zero(t, r.Policies[0].Overhead())
}

// A requeued job starts twice, and rows that came twice count once.
func TestRequeuesAndRepeatedRows(t *testing.T) {
	t.Parallel()
	first, again := onNode("1", 1000, 1045, 2000, "c1"), onNode("1", 2000, 2060, 3000, "c1")
	r := evaluate(t, first, again, again, first)
	require.Equal(t, 2, r.Summary.Starts)
}

// Worked by hand: a node is wanted at 1000, 5000 and 9000 for 1,000 s each time,
// and boots for 50 s; idle is 300 s after each use with nothing, and 3,600 s with
// a keep-alive of an hour, but for the pauses, which are shorter than that.
func TestPoliciesWorkedByHand(t *testing.T) {
	t.Parallel()
	r := evaluate(t, onNode("1", 1000, 1050, 2050, "c1"), onNode("2", 5000, 5050, 6050, "c1"),
		onNode("3", 9000, 9050, 10_050, "c1"))
	require.Len(t, r.Policies, 5)
	nothing, quarter, hour, sight := r.Policies[0], r.Policies[1], r.Policies[2], r.Policies[4]
	require.Equal(t, 3, nothing.Waits.Starts)
	require.InDelta(t, 3*300/3600.0, nothing.IdleHours, 1e-9)
	require.InDelta(t, 3*50/3600.0, nothing.BootHours, 1e-9)
	require.InDelta(t, 3*900/3600.0, quarter.IdleHours, 1e-9)
	require.Equal(t, 3, quarter.Waits.Starts)
	require.Equal(t, 1, hour.Waits.Starts)
	require.InDelta(t, (2950+3000+3600)/3600.0, hour.IdleHours, 1e-9) // until 5000, until 9000, and for an hour
	require.InDelta(t, 50/3600.0, hour.BootHours, 1e-9)
	require.Equal(t, Waits{}, sight.Waits)
	require.InDelta(t, 3*50/3600.0, sight.Overhead(), 1e-9)
	require.Equal(t, Foresight, sight.Policy)
}

// Work that comes in the same hours every day, with pauses a little longer than
// the suspend time: the forecast keeps the node through the pauses, and no longer
// into the nights than it must.
func TestTheForecastLearnsTheHours(t *testing.T) {
	t.Parallel()
	var jobs []Job
	for day := range int64(14) {
		for n := range int64(32) {
			at := day*86_400 + 9*3600 + n*900
			jobs = append(jobs, onNode(fmt.Sprint(day, "-", n), at, at+60, at+510, "c1"))
		}
	}
	p := Period{Begin: 0, From: 7 * 86_400, Until: 14 * 86_400}
	r, err := Evaluate(jobs, assumed, p, plain)
	require.NoError(t, err)
	by := map[string]Outcome{}
	for _, o := range r.Policies {
		by[o.Policy] = o
	}
	require.Equal(t, 7*32, by[Nothing].Waits.Starts)
	require.LessOrEqual(t, by[Forecast].Waits.Starts, 14, "the first of a day, and hardly another")
	require.Less(t, by[Forecast].Overhead(), by[KeepAlive].Overhead(), "of an hour")
	quarter := r.Policies[r.EqualKeepAlive]
	require.Equal(t, int64(900), quarter.Keep)
	require.Equal(t, r.BestKeepAlive, r.EqualKeepAlive)
}

func TestWhatCannotBe(t *testing.T) {
	t.Parallel()
	good := onNode("1", 1000, 1045, 2000, "c1")
	for name, run := range map[string]func() error{
		"suspend": func() error { return evaluateWith([]Job{good}, Assumptions{SuspendTime: -2, BootLimit: 1}, allDay) },
		"limit":   func() error { return evaluateWith([]Job{good}, Assumptions{}, allDay) },
		"boot":    func() error { return evaluateWith([]Job{good}, Assumptions{BootLimit: 1, Boot: -1}, allDay) },
		"period":  func() error { return evaluateWith([]Job{good}, assumed, Period{Begin: 5, From: 4, Until: 9}) },
		"times":   func() error { return evaluateWith([]Job{onNode("1", 10, 5, 20, "c1")}, assumed, allDay) },
		"nodes":   func() error { return evaluateWith([]Job{onNode("1", 1, 5, 20)}, assumed, allDay) },
	} {
		require.Error(t, run(), name)
	}
}

func evaluateWith(jobs []Job, a Assumptions, p Period) error {
	_, err := Evaluate(jobs, a, p, plain)
	return err
}

// drawJobs draws a history of a few nodes on which jobs come at any time.
func drawJobs(t *rapid.T) []Job {
	names := []string{"c1", "c2", "c3"}
	var jobs []Job
	for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
		submit := rapid.Int64Range(0, 50_000).Draw(t, "submit")
		ready := submit + rapid.SampledFrom([]int64{0, 0, 300}).Draw(t, "held")
		start := ready + rapid.Int64Range(0, 900).Draw(t, "wait")
		first := rapid.IntRange(0, 2).Draw(t, "node")
		jobs = append(jobs, Job{ID: string(rune('A' + i)), Submit: submit, Ready: ready, Start: start,
			End: start + rapid.Int64Range(0, 5000).Draw(t, "lasts"), Partition: "gpu",
			Nodes: names[first:rapid.IntRange(first+1, 3).Draw(t, "nodes")], GPUs: rapid.IntRange(0, 8).Draw(t, "gpus"),
			Hold: Hold(rapid.IntRange(0, 2).Draw(t, "hold")), Own: rapid.IntRange(0, 9).Draw(t, "own") == 0})
	}
	return jobs
}

// For any history: every start is in one class, boots are part of waits, the
// order of rows changes nothing, and foresight waits for nothing and costs no
// more than any policy under which nobody waits.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t)
		r, err := Evaluate(jobs, assumed, allDay, plain)
		require.NoError(t, err)
		h := inferStarts(jobs, assumed, allDay)
		for _, s := range h.starts {
			require.GreaterOrEqual(t, s.boot, int64(0))
			require.LessOrEqual(t, s.boot, s.wait)
			require.LessOrEqual(t, s.boot, assumed.BootLimit)
			require.Equal(t, s.warmth == Cold, s.boot > 0)
		}
		s := r.Summary
		require.LessOrEqual(t, s.AtOnce+s.Boot.Starts, s.Starts)
		require.GreaterOrEqual(t, s.AtOnce+s.Boot.Starts+s.Limits.Starts+s.Resources.Starts+s.Priority.Starts+
			s.Untold.Starts, s.Starts)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(jobs),
			func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
		again, err := Evaluate(jobs, assumed, allDay, plain)
		require.NoError(t, err)
		require.Equal(t, r, again)
		for _, o := range r.Policies {
			if o.Policy == Foresight {
				require.Zero(t, o.Waits.Starts)
			}
		}
	})
}

// The longer a cluster leaves its nodes up, the fewer boots are waited for.
func TestALongerSuspendTimeIsNeverColder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jobs, longer := drawJobs(t), assumed
		longer.SuspendTime += rapid.Int64Range(0, 10_000).Draw(t, "longer")
		short, long := inferStarts(jobs, assumed, allDay), inferStarts(jobs, longer, allDay)
		require.LessOrEqual(t, long.summarize().Boot.Starts, short.summarize().Boot.Starts)
	})
}

// Whatever Forewarm's own jobs do, they add no start and no busy hour, and make
// no node colder.
func TestOwnJobsOnlyWarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawJobs(t)
		before := inferStarts(jobs, assumed, allDay).summarize()
		for i := range rapid.IntRange(1, 20).Draw(t, "beats") {
			at := rapid.Int64Range(0, 60_000).Draw(t, "at")
			jobs = append(jobs, Job{ID: "own" + string(rune('A'+i)), Submit: at, Ready: at, Start: at, End: at + 1,
				Nodes: []string{"c1"}, Partition: "gpu", Own: true})
		}
		after := inferStarts(jobs, assumed, allDay).summarize()
		require.Equal(t, before.Starts, after.Starts)
		require.Equal(t, before.GPUs, after.GPUs)
		require.InDelta(t, before.BusyNodeHours, after.BusyNodeHours, 1e-9)
		require.LessOrEqual(t, after.Boot.Starts, before.Boot.Starts)
	})
}
