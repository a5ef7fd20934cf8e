package jobs

import (
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// ask is an event that people ask for, in words, or an edit.
type ask struct {
	event   job.Event
	asked   string // what cannot be done where it is refused
	message string // what the journal says where it is done
	edit    *ledger.JobEdit
	may     *bounds // of an edit
}

var (
	toCancel  = ask{event: job.Cancel, asked: "cancel it", message: "cancelled"}
	toHold    = ask{event: job.Hold, asked: "hold it", message: "held until it is released"}
	toRelease = ask{event: job.Release, asked: "release it", message: "released"}
	toRequeue = ask{event: job.Requeue, asked: "requeue it", message: "ended, to be tried again"}
	toShelve  = ask{event: job.Shelve, asked: "requeue and hold it", message: "ended, and held until it is released"}
)

// doTo moves a job by what is asked, and gives back what it has.
func (a ask) doTo(tx *txn.Tx, p *txn.PoolTx, j job.Job) error {
	if a.edit != nil {
		return edit(tx, p, j, *a.edit, *a.may)
	}
	if done, err := a.steerReturn(tx, j); done || err != nil {
		return err
	}
	next, err := j.Apply(a.event, job.Asked, tx.Now())
	if err != nil && a.event == job.Hold && j.HasGPUs() && !j.Ending.Is() {
		return &ledger.StateError{Subject: j.ID, State: string(j.State()), Asked: a.asked,
			Fix: "End what it runs, and hold it then", Command: "forewarm jobs requeue --hold " + j.ID}
	}
	if err != nil {
		return &ledger.StateError{Subject: j.ID, State: string(j.State()), Asked: a.asked}
	}
	if j.HasGPUs() {
		if asks, err := askToEnd(tx, p, j, a.event, a.asked); asks || err != nil {
			return err
		}
	}
	txn.NoteJob(tx, next, a.message)
	if next.State() == job.Held {
		forgetStart(tx, next)
	}
	tx.WakePlan(p.Pool.ID)
	if !j.HasGPUs() {
		return nil
	}
	if err := txn.EndRanks(tx, next); err != nil {
		return err
	}
	return booking.ReleaseOfJob(tx, p, j.AllocationID, "job_"+string(next.State()))
}

// steerReturn decides whether a job that was told to end, and comes back, is held then. It reports whether that was
// asked.
func (a ask) steerReturn(tx *txn.Tx, j job.Job) (asked bool, err error) {
	if !j.Ending.Returns() || a.event != job.Hold && a.event != job.Shelve && a.event != job.Release {
		return false, nil
	}
	if hold := a.event != job.Release; j.Ending.Hold != hold {
		j.Ending.Hold = hold
		txn.PutJob(tx, j)
		tx.AddEvent(ledger.Event{OrganizationID: j.OrganizationID, Type: ledger.JobEnding, Subject: j.ID, PoolID: j.PoolID,
			Reason: job.Asked, Message: endingText(j.Ending, tx.Now())})
	}
	return true, nil
}

// isPossible reports whether it can be done to a job in this state.
func (a ask) isPossible(s job.State) bool {
	if a.edit != nil {
		return slices.Contains(editable(*a.edit), s)
	}
	_, err := job.Machine.Next(s, a.event)
	return err == nil
}

// statesOf are the states of the jobs of a set to which it can be done.
func (a ask) statesOf(s ledger.JobSet) (all []string) {
	for _, state := range job.Machine.States {
		wanted := len(s.State) == 0 || slices.Contains(s.State, string(state))
		if wanted && a.isPossible(state) {
			all = append(all, string(state))
		}
	}
	return all
}

// isAsked reports whether a job of a pool is as is asked, or was told to end and then comes to that by itself.
func (a ask) isAsked(p *txn.PoolTx, j job.Job) bool {
	if a.edit != nil {
		to := a.edit.Pool
		stays := to == nil || *to == p.Pool.ID || *to == p.Pool.Name
		return stays && a.edit.Describe(j, a.edit.Of(j), j.SubmittedAt) == ""
	}
	switch j.Ending.Then {
	case job.ThenCancelled:
		return a.event == job.Cancel
	case job.ThenRequeued, job.ThenPreempted:
		return a.event == job.Requeue || a.event == job.Shelve && j.Ending.Hold
	}
	return false
}
