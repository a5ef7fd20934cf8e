package main

import (
	"container/heap"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
)

// tick is the time between two decisions, in seconds.
const tick = 60

// ticker asks a policy at every full minute from its first job on.
type ticker struct{ next int64 }

func newTicker() ticker { return ticker{math.MaxInt64} }

func (t *ticker) noteEvent(now int64) {
	if t.next == math.MaxInt64 {
		t.next = (now + tick - 1) / tick * tick
	}
}

func (t *ticker) noteAsked(now int64) { t.next = now/tick*tick + tick }

// Next returns the next full minute.
func (t *ticker) Next() int64 { return t.next }

// punctual lets a policy see jobs end as if none had waited.
type punctual struct {
	backtest.Policy
	running ends
}

// makePunctual wraps a policy so that it reads the demand as if nobody waited. The
// published baselines do, which favours them slightly.
func makePunctual(p backtest.Policy) backtest.Policy { return &punctual{Policy: p} }

// Submit tells of a job.
func (p *punctual) Submit(now int64, j backtest.Job) {
	p.tellEndsUntil(now)
	p.Policy.Submit(now, j)
	heap.Push(&p.running, j)
}

// End says nothing: what the policy takes for the end has been told.
func (p *punctual) End(int64, backtest.Job, int64) {}

// Target asks the policy.
func (p *punctual) Target(now int64) int {
	p.tellEndsUntil(now)
	return p.Policy.Target(now)
}

// tellEndsUntil tells of all the ends until now.
func (p *punctual) tellEndsUntil(now int64) {
	for len(p.running) > 0 && p.running[0].Submit+p.running[0].Duration <= now {
		j := heap.Pop(&p.running).(backtest.Job)
		p.Policy.End(j.Submit+j.Duration, j, j.Submit)
	}
}

// ends is a heap of jobs by the second in which they end if they do not wait.
type ends []backtest.Job

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, k int) bool { return e[i].Submit+e[i].Duration < e[k].Submit+e[k].Duration }
func (e ends) Swap(i, k int)      { e[i], e[k] = e[k], e[i] }

// Push adds a job.
func (e *ends) Push(j any) { *e = append(*e, j.(backtest.Job)) }

// Pop takes the last one.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
