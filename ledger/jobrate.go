package ledger

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

// JobEntries is what somebody has used of the rate at which they may submit jobs.
type JobEntries struct {
	Who     string // an organization, and of it a person, or a key that is nobody's
	Entries queue.Entries
}

// BoundsSubmissions reports whether people may not submit as often as they like.
func (c SchedulingConfig) BoundsSubmissions() bool { return c.Rate != queue.Rate{} }

// CountSubmission is what somebody has used with one more submission. *SubmissionRateError: there may be
// none yet.
func (c SchedulingConfig) CountSubmission(used JobEntries, now time.Time) (JobEntries, error) {
	next, wait, opens := c.Rate.Enter(used.Entries, now)
	if wait != queue.WaitNone {
		return used, &SubmissionRateError{Rate: c.Rate, Daily: wait == queue.WaitDaily, Opens: opens, Now: now}
	}
	used.Entries = next
	return used, nil
}

// SubmissionRateError says that somebody submits more than they may, and from when on they may again.
type SubmissionRateError struct {
	Rate  queue.Rate
	Daily bool // it is the bound of a day
	Opens time.Time
	Now   time.Time
}

// Error names the bound.
func (e *SubmissionRateError) Error() string {
	if e.Daily {
		return fmt.Sprintf("you have submitted jobs %d times today, which is as often as one may in a day of UTC",
			e.Rate.Daily)
	}
	return fmt.Sprintf("you submit jobs faster than one may: once in %s, and %d times at once", e.Rate.Every,
		max(e.Rate.Burst, 1))
}
