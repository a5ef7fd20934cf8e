package backtest_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

// Boots of 10 s, scored from 130 to 200: the pause of 5 s is held by two units,
// that of 20 s is not, and what the first job used is freed too early to count.
func TestOracleStory(t *testing.T) {
	t.Parallel()
	trace := backtest.Trace{Tenants: []string{"a"}, Jobs: []backtest.Job{
		{Submit: 100, Duration: 5, GPUs: 1}, {Submit: 150, Duration: 10, GPUs: 3},
		{Submit: 165, Duration: 15, GPUs: 2}, {Submit: 200, Duration: 50, GPUs: 1},
	}}
	o, err := backtest.Oracle(trace, 10)
	if err != nil {
		t.Fatal(err)
	}
	if idle, boot := toSeconds(o.IdleHours), toSeconds(o.BootHours); idle != 2*5 || boot != 3*10+10 {
		t.Errorf("idle %d, booting %d GPU-seconds, want 10 and 40", idle, boot)
	}
	if o.ZeroWaitShare() != 100 || o.Mean != 0 || o.Jobs != 3 {
		t.Errorf("%d jobs, %v %% of them without a wait, mean %v s", o.Jobs, o.ZeroWaitShare(), o.Mean)
	}
	if busy := toSeconds(o.BusyHours); busy != 3*10+2*15 {
		t.Errorf("busy %d GPU-seconds, want 60", busy)
	}
}

func TestOracleFollowsEachLevel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		boot := rapid.Int64Range(1, 20).Draw(t, "boot")
		o, err := backtest.Oracle(trace, boot)
		if err != nil {
			t.Fatal(err)
		}
		idle, booting := naiveOracle(trace, boot)
		if toSeconds(o.IdleHours) != idle || toSeconds(o.BootHours) != booting {
			t.Fatalf("idle %d, booting %d GPU-seconds, want %d and %d", toSeconds(o.IdleHours), toSeconds(o.BootHours),
				idle, booting)
		}
	})
}

// naiveOracle walks each level of each tenant second by second, backwards, so
// that it knows when the level is wanted next.
func naiveOracle(trace backtest.Trace, boot int64) (idle, booting int64) {
	first, from, last := trace.Window()
	end := last
	for tenant := range trace.Tenants {
		for level := 1; level <= 5*len(trace.Jobs); level++ {
			next, wanted := int64(math.MaxInt64), false
			var unused []int64 // seconds since the level was wanted, backwards
			for now := end; now >= first-boot; now-- {
				if wanted = demandAt(trace, tenant, now) >= level; wanted {
					idle += secondsHeld(unused, next, now, boot, from, last)
					booting += secondsBooting(next, now, boot, from, last)
					next, unused = now, nil
					continue
				}
				unused = append(unused, now)
			}
			booting += secondsBooting(next, math.MinInt64/2, boot, from, last)
		}
	}
	return idle, booting
}

func demandAt(trace backtest.Trace, tenant int, now int64) int {
	sum := 0
	for _, j := range trace.Jobs {
		if j.Tenant == tenant && j.Submit <= now && now < j.Submit+j.Duration {
			sum += j.GPUs
		}
	}
	return sum
}

// secondsHeld counts the scored seconds of a pause after now that is shorter than a boot.
func secondsHeld(unused []int64, next, now, boot, from, last int64) (n int64) {
	if next == math.MaxInt64 || next-now-1 >= boot {
		return 0
	}
	for _, s := range unused {
		if s >= from && s < last {
			n++
		}
	}
	return n
}

// secondsBooting counts the scored seconds of the boot before next, if the pause since
// now is long enough for it.
func secondsBooting(next, now, boot, from, last int64) (n int64) {
	if next == math.MaxInt64 || next-now-1 < boot {
		return 0
	}
	for s := next - boot; s < next; s++ {
		if s >= from && s < last {
			n++
		}
	}
	return n
}

func TestGapClosed(t *testing.T) {
	t.Parallel()
	reactive := backtest.Outcome{WaitHours: 10, BootHours: 20}
	oracle := backtest.Outcome{IdleHours: 5, BootHours: 5}
	half := backtest.Outcome{WaitHours: 5, IdleHours: 10, BootHours: 5}
	for _, c := range []struct {
		o    backtest.Outcome
		want float64
	}{{reactive, 0}, {oracle, 100}, {half, 50}} {
		if got := backtest.GapClosed(reactive, c.o, oracle, 3); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v closes %v %%, want %v", c.o, got, c.want)
		}
	}
}

func TestDemandIsOneStepASecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		for tenant, steps := range trace.Demand() {
			if !slices.IsSortedFunc(steps, func(a, b backtest.Step) int { return int(a.At - b.At) }) {
				t.Fatal("steps are not in order")
			}
			for i, s := range steps {
				if i > 0 && steps[i-1].At == s.At {
					t.Fatalf("two steps at %d", s.At)
				}
				if want := demandAt(trace, tenant, s.At); s.Level != want {
					t.Fatalf("level %d at %d, want %d", s.Level, s.At, want)
				}
			}
		}
	})
}
