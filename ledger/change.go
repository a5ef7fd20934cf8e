package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// FinishedRun is the end of a guarded run of a task: the task is done, or, if Next is
// not zero (and for keyed tasks always), ready to run again at Next.
type FinishedRun struct {
	Guard   Guard
	Next    time.Time
	Failure string // why it has to run again; empty: it did not fail
}

// Change is what one transaction writes. A row with Version 0 is new.
type Change struct {
	PepperCheck   string // of the first start; one that is there is left alone
	Organizations []Organization
	Users         []User
	Keys          []Key
	Pools         []Pool
	Nodes         []node.Node
	Reservations  []reservation.Reservation
	Allocations   []allocation.Allocation
	Schedules     []Schedule
	Jobs          []job.Job
	JobRanks      []job.Rank         // replace what was known before
	JobEntries    []JobEntries       // replace what was used before
	JobStarts     []JobStartForecast // of jobs that have none; those of others are left alone
	ForgetStarts  []string           // jobs whose forecast is forgotten: what was forecast is not what is asked any more
	JobTurns      []JobTurns         // replace what was decided before; one of a pool
	JobOutput     []JobOutput        // those that are there are left alone
	TrimmedOutput []TrimmedOutput
	DroppedInput  []string // jobs whose input is deleted
	Events        []Event
	Seals         []Seal // new rows only; ErrTaken: there is one of that number
	Tasks         []Task // new rows only; a Key that exists is left alone
	Replays       []Replay
	Plans         []Preview
	Orphans       []Orphan      // replace what was known before
	Provisioners  []Provisioner // replace what was reported before
	Watched       []Watched     // replace how far it was watched before
	Pauses        []Pause       // replace what was paused before
	Uses          []PoolUse     // replace what was known before
	Forecasts     []Forecast    // new rows only
	Daemons       []Daemon
	Presences     []Presence   // replace what was said before
	GPUStretches  []GPUStretch // those that are there are left alone
	// ClosedForecasts were read open: their Outcome is written, and nothing else.
	// ErrConflict: one has an outcome already.
	ClosedForecasts []Forecast
	// Revisions are set on pools, whatever the version of their rows. A revision that is
	// drawn anew for each transaction stands for what the transaction left: who
	// finds it again, under the pool's lock, knows all that is live there.
	Revisions map[string]int64
	// Finished are runs of tasks that end with this change.
	Finished []FinishedRun
	// Wake are tasks that are to run; see Tx.Wake.
	Wake []Wakeup
	// Urgent has whoever looks for what is new, as tasks that are due and orders for nodes, look at once.
	Urgent bool
	// Last says that nothing follows: the transaction is committed when Save
	// returns nil, and whatever is asked of it afterwards is an error. Within a
	// joined transaction it is ignored.
	Last bool
}

// Wakeup has the task of a key run at a time, if it would run later.
type Wakeup struct {
	Key string
	At  time.Time
}
