package backtest_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/backtest"
)

func TestAlwaysOnAsksOnce(t *testing.T) {
	t.Parallel()
	p := backtest.AlwaysOn(77, 5)
	if p.Next() != 77 || p.Target(77) != 5 || p.Next() != math.MaxInt64 {
		t.Fatal("want one question at 77, answered with 5")
	}
}

func TestAlwaysOnAtThePeakLetsNobodyWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t)
		peaks := trace.Demand()
		first := trace.Jobs[0].Submit
		// A first job pays for the boot of the others, long before them.
		for i := range trace.Jobs {
			trace.Jobs[i].Submit += 100
			if trace.Jobs[i].After > 0 {
				trace.Jobs[i].After += len(trace.Tenants)
			}
		}
		for i := range trace.Tenants {
			trace.Jobs = append([]backtest.Job{{Submit: first, Duration: 1, GPUs: 1, Tenant: i}}, trace.Jobs...)
		}
		out, err := backtest.Run(trace, backtest.Options{Boot: 10, Policy: func(i int) backtest.Policy {
			return backtest.AlwaysOn(first, backtest.Peak(peaks[i])+1)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if out.Longest != 0 {
			t.Fatalf("a job waited %d s", out.Longest)
		}
	})
}

func TestScheduleKeepsWeekdayHours(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*3600)
	at := func(day, hour, minute int) int64 {
		return time.Date(2026, 3, day, hour, minute, 0, 0, zone).Unix() // 2 March 2026 is a Monday
	}
	p := backtest.Schedule(at(5, 20, 30), backtest.Hours{Open: 9, Close: 18, Zone: zone}, 7)
	var got []int
	var when []int64
	for now := p.Next(); now <= at(9, 18, 0); now = p.Next() {
		when = append(when, now)
		got = append(got, p.Target(now))
	}
	changes := map[int64]int{at(5, 20, 30): 0, at(6, 9, 0): 7, at(6, 18, 0): 0, at(9, 9, 0): 7, at(9, 18, 0): 0}
	seen := 0
	for i, now := range when {
		if want, ok := changes[now]; ok {
			seen++
			if got[i] != want {
				t.Errorf("%v: %d GPUs, want %d", time.Unix(now, 0).In(zone), got[i], want)
			}
		} else if got[i] != 0 {
			t.Errorf("%v: %d GPUs, want none at a weekend", time.Unix(now, 0).In(zone), got[i])
		}
	}
	if seen != len(changes) {
		t.Errorf("asked at %d of %d changes", seen, len(changes))
	}
}

func TestSeasonalNaiveRepeatsLastWeek(t *testing.T) {
	t.Parallel()
	const minute, week = 60, 7 * 24 * 3600
	start := int64(1_000_000 * minute)
	p := backtest.SeasonalNaive(0.5)
	job := backtest.Job{GPUs: 8}
	p.Submit(start+30, job)
	if p.Next() != start+minute {
		t.Fatalf("first question at %d, want the next full minute", p.Next()-start)
	}
	targets := map[int64]int{}
	for p.Next() <= start+2*week {
		now := p.Next()
		if now == start+40*minute {
			p.End(now, job, start+30)
		}
		targets[now] = p.Target(now)
	}
	for after, want := range map[int64]int{
		-16 * minute: 0, -15 * minute: 4, 0: 4, 40 * minute: 4, 54 * minute: 4, 56 * minute: 0,
	} {
		if got := targets[start+week+after]; got != want {
			t.Errorf("%d s after the same time: %d GPUs, want %d", after, got, want)
		}
	}
	if got := targets[start+20*minute]; got != 0 {
		t.Errorf("in the first week: %d GPUs, want none", got)
	}
}
