package jobs

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// sinceOf is when a job entered its state, as far as that is known; of one that waits, since when its wait counts.
func sinceOf(r ledger.Reader, j job.Job) (time.Time, error) {
	switch {
	case j.Over():
		return j.EndedAt, nil
	case j.State() == job.Running || j.State() == job.Preempted:
		return j.StartedAt, nil
	case j.State() == job.Scheduled:
		return j.ScheduledAt, nil
	case j.State() == job.Held:
		return heldSince(r, j)
	}
	if waits := j.WaitsSince(); j.IsEligible() && !waits.After(r.Now()) {
		return waits, nil
	}
	return j.SubmittedAt, nil
}

// mostHolds is how many holds of a job are read, of which the last one counts.
const mostHolds = 200

// heldSince is when a job was held last: when it was submitted, if it was held then.
func heldSince(r ledger.Reader, j job.Job) (time.Time, error) {
	since, after := j.SubmittedAt, int64(0)
	for {
		found, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: j.ID, Type: "job." + string(job.Held),
			After: after}, mostHolds)
		if err != nil {
			return since, fmt.Errorf("reading since when job %s is held: %w", j.ID, err)
		}
		for _, e := range found {
			since, after = e.At, e.Seq
		}
		if len(found) < mostHolds {
			return since, nil
		}
	}
}
