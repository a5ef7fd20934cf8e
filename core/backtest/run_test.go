package backtest_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

// every asks targets in every second.
type every struct {
	tenant  int
	next    int64
	targets func(tenant int, now int64) int
}

func (e *every) Submit(int64, backtest.Job)     {}
func (e *every) End(int64, backtest.Job, int64) {}
func (e *every) Next() int64                    { return e.next }
func (e *every) Target(now int64) int {
	e.next = now + 1
	return e.targets(e.tenant, now)
}

func drawTrace(t *rapid.T) backtest.Trace {
	trace := backtest.Trace{Tenants: []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "tenants")]}
	now := int64(1_000)
	for range rapid.IntRange(1, 25).Draw(t, "jobs") {
		now += rapid.Int64Range(0, 12).Draw(t, "gap")
		trace.Jobs = append(trace.Jobs, backtest.Job{
			Submit: now, Duration: rapid.Int64Range(1, 30).Draw(t, "duration"),
			GPUs:   rapid.IntRange(1, 5).Draw(t, "gpus"),
			Tenant: rapid.IntRange(0, len(trace.Tenants)-1).Draw(t, "tenant"),
		})
		drawReaction(t, &trace)
	}
	return trace
}

// drawReaction lets the last job be a reaction to the end of an earlier one, now and then.
func drawReaction(t *rapid.T, trace *backtest.Trace) {
	last := &trace.Jobs[len(trace.Jobs)-1]
	after := rapid.IntRange(0, len(trace.Jobs)-1).Draw(t, "after")
	if after == 0 {
		return
	}
	if before := trace.Jobs[after-1]; before.Submit+before.Duration <= last.Submit {
		last.After = after
	}
}

// drawTargets draws targets that change every few seconds.
func drawTargets(t *rapid.T) func(tenant int, now int64) int {
	levels := rapid.SliceOfN(rapid.IntRange(0, 8), 1, 40).Draw(t, "targets")
	hold := rapid.Int64Range(1, 9).Draw(t, "hold")
	return func(tenant int, now int64) int { return levels[(int(now/hold)+7*tenant)%len(levels)] }
}

// replayBoth replays a drawn trace with drawn targets by Run and by naive.
func replayBoth(t *rapid.T) (backtest.Outcome, *naive, map[int]int64) {
	n := &naive{trace: drawTrace(t), opt: backtest.Options{
		Boot: rapid.Int64Range(1, 20).Draw(t, "boot"), KeepAlive: rapid.Int64Range(0, 25).Draw(t, "keep-alive"),
		KeepReady: rapid.Bool().Draw(t, "keep ready"),
	}}
	waits := map[int]int64{}
	opt := n.opt
	opt.Waited = func(job int, wait int64) { waits[job] = wait }
	if rapid.Bool().Draw(t, "with a policy") {
		n.targets = drawTargets(t)
		opt.Policy = func(tenant int) backtest.Policy { return &every{tenant, n.trace.Jobs[0].Submit, n.targets} }
	}
	out, err := backtest.Run(n.trace, opt)
	if err != nil {
		t.Fatal(err)
	}
	n.runAll()
	return out, n, waits
}

func TestRunEqualsTheNaiveReplay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out, n, waits := replayBoth(t)
		for id := range n.trace.Jobs {
			if got, ok := waits[id]; !ok || got != n.waits[id] {
				t.Fatalf("job %d waited %d s (started: %v), want %d s", id, got, ok, n.waits[id])
			}
		}
		if idle := toSeconds(out.IdleHours); idle != n.idle {
			t.Fatalf("idle: %d GPU-seconds, want %d", idle, n.idle)
		}
		if boot := toSeconds(out.BootHours); boot != n.boot {
			t.Fatalf("booting: %d GPU-seconds, want %d", boot, n.boot)
		}
	})
}

func toSeconds(hours float64) int64 { return int64(math.Round(hours * 3600)) }

func TestNobodyWaitsLongerThanABoot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out, n, waits := replayBoth(t)
		for id, wait := range waits {
			if wait < 0 || wait > n.opt.Boot {
				t.Fatalf("job %d waited %d s with boots of %d s", id, wait, n.opt.Boot)
			}
		}
		if out.Longest > n.opt.Boot {
			t.Fatalf("longest wait %d s", out.Longest)
		}
	})
}

// One unit is ready, two are wanted and one boots: what is ready stays if it is told to, and goes otherwise once one
// is enough.
func TestAReadyUnitIsNotLostToABoot(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{Submit: 100, Duration: 1, GPUs: 1}, {Submit: 150, Duration: 1, GPUs: 1}, {Submit: 155, Duration: 1, GPUs: 1},
		{Submit: 200, Duration: 1, GPUs: 1},
	}}
	for keep, want := range map[bool]int64{false: 5, true: 0} {
		waits := map[int]int64{}
		_, err := backtest.Run(trace, backtest.Options{Boot: 10, KeepReady: keep,
			Waited: func(job int, wait int64) { waits[job] = wait },
			Policy: func(int) backtest.Policy {
				return &every{next: 100, targets: func(_ int, now int64) int {
					if now == 150 { // while the job runs, one more is wanted
						return 2
					}
					return 1
				}}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if waits[1] != 0 || waits[2] != want {
			t.Errorf("keep ready %v: waits of %v, want the third to be %d s", keep, waits, want)
		}
	}
}

// The hand-computed stories have boots of 10 s; the window scored is (from, last],
// 30 % after the first submission.
func TestStories(t *testing.T) {
	t.Parallel()
	job := func(submit, duration int64, gpus int) backtest.Job {
		return backtest.Job{Submit: submit, Duration: duration, GPUs: gpus}
	}
	for name, c := range map[string]struct {
		jobs       []backtest.Job
		keep       int64
		zero, mean float64
		idle, boot int64 // GPU-seconds
	}{
		// Scored are the seconds after 130. The second job boots from 150 to 160, the
		// third from 200, when the window ends.
		"reactive": {[]backtest.Job{job(100, 5, 1), job(150, 5, 2), job(200, 5, 1)}, 0, 0, 10, 0, 20},
		// The unit of the first job, free at 115, serves the second one at 150, is free
		// again at 155 and serves the third.
		"kept alive": {[]backtest.Job{job(100, 5, 1), job(150, 5, 1), job(200, 5, 1)}, 60, 100, 0, 20 + 45, 0},
		// The unit that is free at 115 is released at 150, yet the job of that second
		// gets it.
		"released in the second of an arrival": {[]backtest.Job{job(100, 5, 1), job(150, 5, 1), job(200, 5, 1)}, 35, 50,
			5, 20 + 35, 0},
		// One unit is idle when the second job asks for two: it is held for it, so that
		// the third job of one waits for what the second frees at 163. Idle are the first
		// unit until 160, and from 163, 165 and 183 on three units until 200.
		"strict order": {[]backtest.Job{job(100, 5, 1), job(150, 3, 2), job(155, 20, 1), job(200, 1, 1)}, 60, 100 / 3.0,
			6, 30 + 37 + 35 + 17, 10 + 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := backtest.Run(backtest.Trace{Tenants: []string{"a"}, Jobs: c.jobs},
				backtest.Options{Boot: 10, KeepAlive: c.keep})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(out.ZeroWaitShare()-c.zero) > 1e-9 || math.Abs(out.Mean-c.mean) > 1e-9 {
				t.Errorf("zero-wait %v %%, mean %v s, want %v %%, %v s", out.ZeroWaitShare(), out.Mean, c.zero, c.mean)
			}
			if idle, boot := toSeconds(out.IdleHours), toSeconds(out.BootHours); idle != c.idle || boot != c.boot {
				t.Errorf("idle %d and booting %d GPU-seconds, want %d and %d", idle, boot, c.idle, c.boot)
			}
		})
	}
}

func TestWrongHistoriesAreRefused(t *testing.T) {
	t.Parallel()
	good := backtest.Job{Submit: 5, Duration: 1, GPUs: 1}
	for name, jobs := range map[string][]backtest.Job{
		"empty":                nil,
		"unsorted":             {good, {Submit: 4, Duration: 1, GPUs: 1}},
		"no GPU":               {{Submit: 5, Duration: 1}},
		"no time":              {{Submit: 5, GPUs: 1}},
		"no tenant":            {{Submit: 5, Duration: 1, GPUs: 1, Tenant: 1}},
		"a reaction to itself": {{Submit: 5, Duration: 1, GPUs: 1, After: 1}},
		"a reaction too early": {good, {Submit: 5, Duration: 1, GPUs: 1, After: 1}},
		"a huge job":           {{Submit: 5, Duration: 1, GPUs: backtest.MaxGPUs + 1}},
	} {
		if _, err := backtest.Run(backtest.Trace{Tenants: []string{"a"}, Jobs: jobs},
			backtest.Options{Boot: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := backtest.Run(backtest.Trace{}, backtest.Options{Boot: 1}); !errors.Is(err, backtest.ErrEmpty) {
		t.Errorf("empty: %v, want ErrEmpty", err)
	}
}

func TestProgressEndsTheRun(t *testing.T) {
	t.Parallel()
	stop := errors.New("enough")
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{{Submit: 1, Duration: 1, GPUs: 1}}}
	_, err := backtest.Run(trace, backtest.Options{Boot: 1, Progress: func(int, int) error { return stop }})
	if !errors.Is(err, stop) {
		t.Fatalf("error %v, want the one of Progress", err)
	}
}

func TestWhatIsScoredCanEndAfterTheLastJob(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{{Submit: 1, Duration: 10, GPUs: 1}}}
	for last, idle := range map[int64]int64{20: 4, 30: 14, 50: 20} { // it runs from 6 to 16 and its GPU is kept to 36
		out, err := backtest.Run(trace, backtest.Options{Boot: 5, KeepAlive: 20,
			Scored: backtest.Span{From: 0, Last: last}})
		if err != nil {
			t.Fatal(err)
		}
		if got := toSeconds(out.IdleHours); out.Jobs != 1 || got != idle || toSeconds(out.BootHours) != 5 ||
			toSeconds(out.BusyHours) != 10 {
			t.Errorf("up to %d: %d jobs, %d s idle, %d s of boot, %d s busy", last, out.Jobs, got,
				toSeconds(out.BootHours), toSeconds(out.BusyHours))
		}
	}
	if out, err := backtest.Run(trace, backtest.Options{Boot: 5,
		Scored: backtest.Span{From: 1, Last: 50}}); err != nil || out.Jobs != 0 {
		t.Errorf("%d jobs, %v: a job that comes in the second before the scored part is scored", out.Jobs, err)
	}
}

// What is counted before the scored part and in it is what is counted of both at once.
func TestEarlyAndScoredPartsMakeTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		targets := drawTargets(t)
		first, _, last := trace.Window()
		var early, none backtest.Outcome
		opt := backtest.Options{Boot: 7, Early: &early,
			Policy: func(tenant int) backtest.Policy { return &every{tenant, first, targets} }}
		scored, err := backtest.Run(trace, opt)
		opt.Scored, opt.Early = backtest.Span{From: first - 1, Last: last}, &none
		whole, err2 := backtest.Run(trace, opt)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if sum := early.Cost(10) + scored.Cost(10); math.Abs(sum-whole.Cost(10)) > 1e-9 ||
			early.Jobs+scored.Jobs != len(trace.Jobs) || none.Jobs != 0 {
			t.Fatalf("parts cost %v and hold %d and %d jobs; the whole costs %v, and has %d before it", sum, early.Jobs,
				scored.Jobs, whole.Cost(10), none.Jobs)
		}
	})
}
