package sim

import (
	"container/heap"
	"time"
)

// endMachine lets the machine end at the time, unless it ends earlier anyway.
func (c *Cloud) endMachine(m *machine, at time.Time) {
	c.dirty = true
	if !m.Ended.IsZero() && m.Ended.Before(at) {
		return
	}
	m.Ended = at
	heap.Push(&c.pending, event{at: at, machine: m, leaves: live})
}

// advanceMachines moves machines whose time has come to their next stage and returns
// now. It is what keeps every call cheap however many machines there ever were.
func (c *Cloud) advanceMachines() time.Time {
	now := c.clock.Now()
	for len(c.pending) > 0 && !c.pending[0].at.After(now) {
		due := heap.Pop(&c.pending).(event)
		if m := due.machine; m.Stage == due.leaves && (m.Stage != live || hasReached(m.Ended, now)) {
			m.Stage++
			c.leaveStage(m, due.leaves)
		}
	}
	return now
}

func (c *Cloud) leaveStage(m *machine, left stage) {
	switch left {
	case live:
		c.taken[[2]string{m.Offer.Type, m.Offer.Region}]--
		c.queueNextStage(m)
	case shown:
		delete(c.shown, m.ID)
		c.queueNextStage(m)
	case tokenOnly:
		delete(c.tokens, m.Token)
		c.settled = c.settled.add(m.billSum(m.Ended))
	}
}

// queueNextStage queues the end of the machine's present stage, if it has one.
func (c *Cloud) queueNextStage(m *machine) {
	at := m.Ended
	switch m.Stage {
	case shown:
		at = at.Add(c.config.Remembered)
	case tokenOnly:
		at = at.Add(max(tokenMemory, c.config.Remembered))
	}
	if !m.Ended.IsZero() {
		heap.Push(&c.pending, event{at: at, machine: m, leaves: m.Stage})
	}
}

// reclaimMachine lets the provider take the machine back at the time.
func (c *Cloud) reclaimMachine(m *machine, at time.Time) {
	m.Reclaimed = at
	c.endMachine(m, at)
}

// event is the instant at which a machine enters its next stage. A machine
// whose end moved has another event as well, which does not fit its stage or
// comes before its end.
type event struct {
	at      time.Time
	machine *machine
	leaves  stage
}

// events is a heap by time, for container/heap. Ties go by id, so that nothing
// depends on the order of insertion.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].machine.ID < e[j].machine.ID
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push is for container/heap.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop is for container/heap.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}
