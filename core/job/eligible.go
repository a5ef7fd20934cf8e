package job

import "time"

// waitFrom has a job's wait begin: now, or when it may start, and as if it had never run before. It has not begun of
// one that is held, or that waits for other jobs: whoever keeps a job from starting must not have it overtake those who
// waited.
func (j Job) waitFrom(now time.Time) Job {
	if j.state == Held || len(j.Dependencies) > 0 && j.Attempt == 0 {
		j.EligibleAt = time.Time{}
		return j
	}
	return j.waitAnew(now)
}

// waitAnew has the wait begin of a job that nothing but time keeps from starting.
func (j Job) waitAnew(now time.Time) Job {
	j.EligibleAt = now
	if j.NotBefore.After(now) {
		j.EligibleAt = j.NotBefore
	}
	j.EligibleAt = j.EligibleAt.Add(-j.Ran()) // which is taken off again from what it has waited
	return j
}

// Ran is for how long the job's attempts had their GPUs.
func (j Job) Ran() time.Duration { return j.GPUTime / time.Duration(max(j.Shape.GPUs(), 1)) }

// WaitsSince is since when the job has waited, or had when it got its GPUs, as if it had never run before: what it ran
// is no wait. It counts where IsEligible.
func (j Job) WaitsSince() time.Time {
	switch {
	case !j.Over() || j.StartedAt.IsZero():
		return j.EligibleAt.Add(j.Ran())
	case j.Attempt == 1:
		return j.EligibleAt
	}
	last := j.EndedAt.Sub(j.ScheduledAt) // is among what it ran
	since := j.EligibleAt.Add(j.Ran() - min(j.Ran(), last))
	if since.After(j.ScheduledAt) { // its GPUs were its own for some time after its end
		return j.ScheduledAt
	}
	return since
}

// IsEligible reports whether the job has begun to wait, or will at a time that is known.
func (j Job) IsEligible() bool { return !j.EligibleAt.IsZero() }

// LetWait returns the job once what it waited for has come, so that its wait begins. One whose wait has begun keeps
// its place.
func (j Job) LetWait(now time.Time) Job {
	if j.state != Pending || j.IsEligible() {
		return j
	}
	return j.waitAnew(now)
}

// Delay returns a job that waits once it may not start before an instant; zero: it may at once. What it has waited is
// lost where that is still ahead.
func (j Job) Delay(until, now time.Time) Job {
	j.NotBefore = until
	isAhead := j.WaitsSince().After(now)
	if j.IsEligible() && (until.After(now) || isAhead) {
		return j.waitAnew(now)
	}
	return j
}
