package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// lookAgain is how long after GPUs were idle for long enough the pool is planned: what was
// seen of them until then may reach the planner late.
const lookAgain = 30 * time.Second

// Idleness is since when all GPUs of an allocation have been idle, and until when they were
// seen to be.
type Idleness struct{ Since, Seen time.Time }

// Length is for how long they were seen to be idle.
func (i Idleness) Length() time.Duration { return i.Seen.Sub(i.Since) }

// Warned reports whether the holder, who was warned last at a time, was warned of this idleness.
func (i Idleness) Warned(at time.Time) bool { return at.After(i.Since) }

// ReclaimAt is when an allocation, whose holder was warned at a time, is ended unless its GPUs do
// something before; zero: it is not. From the warning to the end the holder has
// the time that is between them in the pool's timers, however late the warning came.
func (i Idleness) ReclaimAt(t capacity.Timers, warned time.Time) time.Time {
	if t.IdleReclaim == 0 || !i.Warned(warned) {
		return time.Time{}
	}
	return calendar.Later(i.Since.Add(t.IdleReclaim), warned.Add(t.IdleReclaim-t.IdleWarn))
}

// planIdle warns the holder of GPUs that have been idle for as long as the pool allows, and
// ends the allocation when that did not help.
func planIdle(c *computation, a *allocation.Allocation) {
	if c.Pool.Timers.IdleWarn == 0 || c.Pool.Observed {
		return
	}
	idle, known := c.Idle[a.ID]
	if !known {
		c.wakeAt(c.now.Add(c.Pool.Timers.IdleWarn)) // whoever learns of idleness wakes the planner; that can be lost
		return
	}
	step := Action{Kind: WarnIdle, Subject: a.ID, Facts: Facts{State: string(a.State()), IdleSince: idle.Since,
		IdleSeen: idle.Seen, WarnedAt: a.IdleWarnedAt, Due: idle.Since.Add(c.Pool.Timers.IdleWarn)}}
	if idle.Warned(a.IdleWarnedAt) {
		step.Kind, step.Facts.Due = ReclaimIdle, idle.ReclaimAt(c.Pool.Timers, a.IdleWarnedAt)
		if step.Facts.Due.IsZero() {
			return
		}
	}
	if !c.judge(step) {
		c.wakeAt(calendar.Later(step.Facts.Due, c.now).Add(lookAgain))
	}
}

// judgeIdle gives the reason for a warning or for the end of an allocation: its GPUs were seen
// to be idle until that was due.
func judgeIdle(f Facts) string {
	return reasonIf(f.State == string(allocation.Active) && f.IdleSince.Before(f.Due) && !f.IdleSeen.Before(f.Due),
		ReasonGPUsIdle)
}
