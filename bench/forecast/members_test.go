package main

import (
	"math"
	"testing"

	"github.com/forewarm/forewarm/core/backtest"
)

// counted wants a fixed number of GPUs from the first job on, and notes what it is told.
type counted struct {
	wants, told int
	next        int64
}

func (c *counted) Submit(now int64, _ backtest.Job)       { c.told, c.next = c.told+1, now }
func (c *counted) End(now int64, _ backtest.Job, _ int64) { c.told, c.next = c.told+1, now }
func (c *counted) Next() int64                            { return c.next }
func (c *counted) Target(int64) int {
	c.next = math.MaxInt64
	return c.wants
}

func TestAPoolHoldsWhatIsHeldForEachOfItsTenants(t *testing.T) {
	t.Parallel()
	policies := map[string]*counted{
		"a": {wants: 1, next: math.MaxInt64}, "b": {wants: 2, next: math.MaxInt64}, "c": {wants: 4, next: math.MaxInt64},
	}
	m := newMembers([]string{"a", "b", "c"}, func(name string) backtest.Policy { return policies[name] })
	pooled := poolTenants(backtest.Trace{Tenants: []string{"c", "a"}, Jobs: []backtest.Job{
		{Submit: 10, Duration: 60, GPUs: 1}, {Submit: 20, Duration: 60, GPUs: 1, Tenant: 1},
	}})
	if next := m.Next(); next != math.MaxInt64 {
		t.Fatalf("asked at %d before any job", next)
	}
	for i, want := range []int{4, 5} {
		j := pooled.Jobs[i]
		m.Submit(j.Submit, j)
		if m.Next() != j.Submit {
			t.Errorf("asked at %d after a job of %d", m.Next(), j.Submit)
		}
		if got := m.Target(j.Submit); got != want {
			t.Errorf("holds %d after job %d, want %d", got, i, want)
		}
	}
	policies["c"].wants = 3
	m.End(90, pooled.Jobs[0], 30)
	if got := m.Target(90); got != 4 {
		t.Errorf("holds %d after the end, want 4", got)
	}
	if policies["a"].told != 1 || policies["b"].told != 0 || policies["c"].told != 2 {
		t.Errorf("told %d, %d and %d times", policies["a"].told, policies["b"].told, policies["c"].told)
	}
}
