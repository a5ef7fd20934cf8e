package backtest_test

import (
	"slices"

	"github.com/forewarm/forewarm/core/backtest"
)

// naive replays a trace second by second and unit by unit, written from the rules
// alone. It is the yardstick of Run.
type naive struct {
	trace   backtest.Trace
	opt     backtest.Options
	targets func(tenant int, now int64) int // asked in every second of the trace
	tenants []*naiveTenant
	waits   map[int]int64
	idle    int64 // GPU-seconds
	boot    int64
}

type naiveTenant struct {
	idle    []int64 // since when, by unit, oldest first
	boots   []int64 // when it is ready, by unit
	running []naiveJob
	pending []int
	target  int
}

type naiveJob struct {
	end  int64
	gpus int
}

func (n *naive) runAll() {
	first, from, last := n.trace.Window()
	n.waits = map[int]int64{}
	for range n.trace.Tenants {
		n.tenants = append(n.tenants, &naiveTenant{})
	}
	for now := first; now <= last || len(n.waits) < len(n.trace.Jobs); now++ {
		if now > from && now <= last {
			n.countSecond()
		}
		for i, t := range n.tenants {
			n.playSecond(i, t, now)
		}
	}
}

// countSecond adds what stood idle or booted during the second that just passed.
func (n *naive) countSecond() {
	for _, t := range n.tenants {
		n.idle += int64(len(t.idle))
		n.boot += int64(len(t.boots))
	}
}

func (n *naive) playSecond(i int, t *naiveTenant, now int64) {
	t.running = slices.DeleteFunc(t.running, func(j naiveJob) bool {
		if j.end == now {
			t.idle = append(t.idle, slices.Repeat([]int64{now}, j.gpus)...)
		}
		return j.end == now
	})
	t.boots = slices.DeleteFunc(t.boots, func(ready int64) bool {
		if ready == now {
			t.idle = append(t.idle, now)
		}
		return ready == now
	})
	n.startPending(t, now)
	for _, reactions := range []bool{false, true} {
		for id, j := range n.trace.Jobs {
			if j.Tenant == i && j.After > 0 == reactions && n.submitted(id) == now {
				t.pending = append(t.pending, id)
				n.startPending(t, now)
			}
		}
	}
	if n.targets != nil {
		t.target = n.targets(i, now)
	}
	n.askPolicy(t, now)
}

func (n *naive) startPending(t *naiveTenant, now int64) {
	for len(t.pending) > 0 {
		j := n.trace.Jobs[t.pending[0]]
		if j.GPUs > len(t.idle) {
			return
		}
		t.idle = t.idle[:len(t.idle)-j.GPUs]
		t.running = append(t.running, naiveJob{now + j.Duration, j.GPUs})
		n.waits[t.pending[0]] = now - n.submitted(t.pending[0])
		t.pending = t.pending[1:]
	}
}

// submitted is when a job is submitted, a second that does not come as long as that is open.
func (n *naive) submitted(id int) int64 {
	j := n.trace.Jobs[id]
	if j.After == 0 {
		return j.Submit
	}
	wait, over := n.waits[j.After-1]
	if !over {
		return -1
	}
	before := n.trace.Jobs[j.After-1]
	return n.submitted(j.After-1) + wait + j.Submit - before.Submit
}

func (n *naive) askPolicy(t *naiveTenant, now int64) {
	need, busy := 0, 0
	for _, id := range t.pending {
		need += n.trace.Jobs[id].GPUs
	}
	for _, j := range t.running {
		busy += j.gpus
	}
	for len(t.idle)+len(t.boots) < need {
		t.boots = append(t.boots, now+n.opt.Boot)
	}
	want := max(0, t.target-busy-need)
	for len(t.idle)+len(t.boots)-need < want {
		t.boots = append(t.boots, now+n.opt.Boot)
	}
	for len(t.idle)+len(t.boots)-need > want && len(t.idle) > need && t.idle[0]+n.opt.KeepAlive <= now {
		if n.opt.KeepReady && len(t.idle)-need <= want {
			return
		}
		t.idle = t.idle[1:]
	}
}
