package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/runtimes"
)

// JobFilter narrows a list of jobs. Zero fields do not narrow.
type JobFilter struct {
	PoolID      string
	State       []string
	ArrayID     string
	ArrayIndex  *int // nil: of any, and of none
	Name        string
	SubmittedBy string
	UserID      string
	Live        bool // nothing that is over
	// Since and Until bound when they were submitted: [Since, Until). Zero: they do not.
	Since, Until time.Time
}

// JobOutput is a part of what an attempt of a job wrote on one node.
type JobOutput struct {
	JobID      string
	Attempt    int
	Rank       int
	Start, End int64 // bytes, in all that it wrote there
	Pieces     []JobPiece
}

// JobPiece is what was written to one stream at once.
type JobPiece struct {
	Stream string    `json:"s"` // stdout or stderr
	At     time.Time `json:"t"` // by the node's clock
	Data   []byte    `json:"d"`
}

// TrimmedOutput is output that is not kept any more: whole parts within [From, To).
type TrimmedOutput struct {
	JobID    string
	Attempt  int
	Rank     int
	From, To int64
}

// What is kept of the output of an attempt on one node, in bytes: its beginning, and its end.
const (
	OutputHead = 256 << 10
	OutputTail = 8 << 20
)

// JobOrdered is the type of the event that the nodes of a job are to start it.
const JobOrdered = "job.ordered"

// OrderTold is the reason of a JobOrdered whose node was told with it.
const OrderTold = "told"

// JobEnding is the type of the event that the nodes of a job are to end it.
const JobEnding = "job.ending"

// JobPreempting is the type of the event that they are, because it leaves for another job.
const JobPreempting = "job.preempting"

// KeepOutput is how long the output of a job is kept that is over.
const KeepOutput = 30 * 24 * time.Hour

// What may wait or run in one pool: of all, and of one organization.
const (
	MostJobs       = 100_000
	MostJobsOfOne  = 20_000
	mostArrayBytes = 32 << 20 // of an array: its command, environment and input, for each index
)

// MostArray bounds the jobs of one array.
const MostArray = 10_000

// JobVersion is a job at one of its versions.
type JobVersion struct {
	ID      string
	Version int
}

// JobReader reads jobs and what is known of their attempts.
type JobReader interface {
	Job(s Scope, id string) (job.Job, error)
	// Jobs returns a page of jobs, ordered by id, which is by submission. They come without
	// their input.
	Jobs(s Scope, f JobFilter, p Page) ([]job.Job, error)
	// CountJobs is how many jobs there are, by their state.
	CountJobs(s Scope, f JobFilter) (map[job.State]int, error)
	// JobsByID returns those of some jobs that there are, by id, without their input.
	JobsByID(ids []string) (map[string]job.Job, error)
	// WholeJobs is JobsByID, with their input.
	WholeJobs(ids []string) (map[string]job.Job, error)
	// ArrayProgress counts the jobs of those of some arrays that there are, by id.
	ArrayProgress(ids []string) (map[string]job.Progress, error)
	// ArrayAttempts is how many jobs of some arrays have GPUs, by id, of those of which any has.
	ArrayAttempts(ids []string) (map[string]int, error)
	// LiveJobs returns the jobs of a pool that are not over, without their input, ordered by id.
	LiveJobs(poolID string) ([]job.Job, error)
	// LiveJobVersions returns their ids and versions, in the same order: it costs a tenth.
	LiveJobVersions(poolID string) ([]JobVersion, error)
	// CountLiveJobs is their number, by organization.
	CountLiveJobs(poolID string) (map[string]int, error)
	// JobRuns returns what an organization ran last, of a name or, where that is empty, of all: up to limit runs that
	// say how long such jobs run, the newest first.
	JobRuns(organizationID, name string, limit int) ([]runtimes.Run, error)
	// JobPredictions scores, by pool, the starts that came in [from, to), and the runs that ended in it.
	JobPredictions(s Scope, from, to time.Time) ([]JobPredictions, error)
	// JobRanks returns the ranks of an attempt, in order.
	JobRanks(jobID string, attempt int) ([]job.Rank, error)
	// RanksOfAttempts is JobRanks of several attempts, of those that there are.
	RanksOfAttempts(all []JobAttempt) (map[JobAttempt][]job.Rank, error)
	// RanksOn returns the ranks on a node that have not ended.
	RanksOn(nodeID string) ([]job.Rank, error)
	// JobOutput returns up to limit parts of what is kept of a rank's output and ends after an
	// offset, in order.
	JobOutput(jobID string, attempt, rank int, after int64, limit int) ([]JobOutput, error)
	// JobEntries is what somebody has used of the rate at which they may submit.
	JobEntries(who string) (JobEntries, error)
	// JobTurns are the jobs whose turn is next in a pool, as it was decided last.
	JobTurns(poolID string) (JobTurns, error)
	// JobOutputEnd is where a rank's output ends, as far as it is known.
	JobOutputEnd(jobID string, attempt, rank int) (int64, error)
}

// JobCommand asks for jobs: what is the same in all of an array.
type JobCommand struct {
	Needs AllocateRequest // pool, model, needs, GPUs and layout
	Job   job.Job         // all that is asked for; without a runtime it has what its pool allows, at most a day
	Held  bool
	// Indices are those of an array, in ascending order; nil: one job.
	Indices    []int
	ArrayLimit int // so many of the array have GPUs at once; 0: no bound
	// Preemptible says that it may be told to leave for others; nil: what its pool says.
	Preemptible *bool
}

// JobReport is what the daemon of a node says of an attempt of a job there.
type JobReport struct {
	JobID   string
	Attempt int
	Rank    int
	Ended   bool
	End     job.End // its time does not count: EndedAgo does
	// EndedAgo is how long before the report it ended; 0 also where that is not known.
	EndedAgo time.Duration
}

// JobAttempt names an attempt of a job.
type JobAttempt struct {
	JobID   string
	Attempt int
}

// JobStop is an attempt that a node's daemon is to end.
type JobStop struct {
	JobAttempt
	Signal string        // of its checkpoint, where Lead is not 0
	Lead   time.Duration // after it, until TERM
	Grace  time.Duration // after TERM, until KILL
	// LeaderOnly says that the job's first process gets the signal, and no other.
	LeaderOnly bool
}

// Check returns *InvalidError for a command that nobody could run, and fills in its GPUs.
func (c *JobCommand) Check() error {
	if l := c.Needs.Layout; c.Needs.GPUs == 0 && (c.Job.Reservation == "" || l.Nodes > 0) {
		c.Needs.GPUs = max(l.Nodes, 1) * max(l.PerNode, 1)
	}
	if err := c.checkNeeds(); err != nil {
		return err
	}
	switch {
	case len(c.Job.Command.Arguments) == 0 || c.Job.Command.Arguments[0] == "":
		return &InvalidError{Field: "command", Rule: "must begin with the name of a program"}
	case c.Job.MaxRuntime < 0 || c.Job.Grace < time.Second:
		return &InvalidError{Field: "max_runtime_seconds", Rule: "must be at least 1 s, as must be grace_seconds"}
	case len(c.Indices) > MostArray:
		return &InvalidError{Field: "array", Rule: fmt.Sprintf("must have at most %d indices", MostArray)}
	case !isAscending(c.Indices):
		return &InvalidError{Field: "array.indices", Rule: "must name each index once, and none below 0"}
	case c.ArrayLimit < 0 || c.ArrayLimit > 0 && len(c.Indices) == 0:
		return &InvalidError{Field: "array.limit", Rule: "must be at least 1, and of an array"}
	}
	if err := checkWhere(c.Job.Where); err != nil {
		return err
	}
	if err := checkJobName(c.Job.Name); err != nil {
		return err
	}
	return c.checkText()
}

// checkNeeds is of what it asks for. A reservation says that by itself, and is one job's.
func (c *JobCommand) checkNeeds() error {
	if c.Job.Reservation == "" {
		return c.Needs.Check()
	}
	if len(c.Indices) > 0 {
		return &InvalidError{Field: "array", Rule: "must be left out of a job that runs in a reservation, which is one job's",
			Fix: "reserve for each, or run the array's work in one job"}
	}
	return nil
}

// isAscending reports whether each index is larger than the one before it, and none is negative.
func isAscending(indices []int) bool {
	last := -1
	for _, index := range indices {
		if index <= last {
			return false
		}
		last = index
	}
	return true
}

// checkText refuses what no kernel takes as an argument or a variable.
func (c *JobCommand) checkText() error {
	for _, name := range slices.Sorted(maps.Keys(c.Job.Command.Environment)) {
		if name == "" || strings.Contains(name, "=") {
			return &InvalidError{Field: "environment", Rule: fmt.Sprintf("%q names no variable", ClipText(name, 40))}
		}
	}
	for _, text := range c.texts() {
		if strings.Contains(text, "\x00") {
			return &InvalidError{Field: "command", Rule: "must have no zero bytes, nor its directory and environment"}
		}
	}
	whole := c.size()
	if len(c.Indices)*whole > mostArrayBytes {
		return &InvalidError{Field: "array", Rule: fmt.Sprintf("must have at most %d indices, with so large a command, "+
			"environment and input", mostArrayBytes/whole), Fix: "put what is large into a file that the nodes share"}
	}
	if whole-len(c.Job.Command.Input) > MostCommand {
		return &InvalidError{Field: "command", Rule: fmt.Sprintf("must have at most %d bytes, with its environment",
			MostCommand)}
	}
	return nil
}

// MostCommand bounds a command with its environment, in bytes.
const MostCommand = 128 << 10

// QueueFullError says that as many jobs wait in a pool as may.
type QueueFullError struct {
	Pool  string // its name
	Most  int
	OfOne bool // it is the bound of one organization
	Asked int  // how many jobs were submitted at once
}

// IsTooMany reports whether the jobs that were submitted at once are more than may ever wait.
func (e *QueueFullError) IsTooMany() bool { return e.Asked > e.Most }

// Error names the pool and its bound.
func (e *QueueFullError) Error() string {
	switch {
	case e.IsTooMany() && e.OfOne:
		return fmt.Sprintf("these are %d jobs at once, and your organization may have %d waiting or running in pool %s",
			e.Asked, e.Most, e.Pool)
	case e.IsTooMany():
		return fmt.Sprintf("these are %d jobs at once, and pool %s takes %d waiting or running", e.Asked, e.Pool, e.Most)
	}
	if e.OfOne {
		return fmt.Sprintf("your organization has as many jobs waiting or running in pool %s as one may: %d", e.Pool, e.Most)
	}
	return fmt.Sprintf("pool %s has as many jobs waiting or running as it takes: %d", e.Pool, e.Most)
}

// WaitText is why it waits, in words, and what is made ready for it meanwhile.
func (q QueuedJob) WaitText() string {
	if q.Ahead == "" {
		return q.Detail
	}
	return q.Detail + "; " + q.Ahead
}

// QueuedJob is a job that waits.
type QueuedJob struct {
	job.Job
	Position int    // from 1; 0: it may not start yet, whatever is free
	Code     string // why it waits
	Detail   string
	Ahead    string // which nodes are made ready for it, in words; empty: none yet
	// Start is when it is predicted to start; nil: that cannot be said, and Unpredicted has why.
	Start       *PredictedTime
	Unpredicted string
	Turn        []string // what decides about its place among those that wait for GPUs, in words
}

// PredictedTime is when something is predicted to happen, and what that rests on. It promises nothing.
type PredictedTime struct {
	Band
	Basis string
}

// Why a job waits.
const (
	WaitsForGPUs = "gpus"
	WaitsForJob  = "dependency"
	WaitsForTime = "not_before"
	// WaitsForArray: as many jobs of its array have GPUs as may.
	WaitsForArray = "array_limit"
	// WaitsForNodes: too few nodes of its pool are such that it may run there.
	WaitsForNodes = "nodes"
	// WaitsForDaemon: of too few nodes on which it may run a daemon is there that would start it.
	WaitsForDaemon = "silent_daemon"
	// WaitsForQuota: its organization holds as many GPUs as it may, or would with it.
	WaitsForQuota = "quota"
)

// IsOf reports whether it is of an attempt's rank.
func (s JobReport) IsOf(r job.Rank) bool {
	return r.JobID == s.JobID && r.Attempt == s.Attempt && r.Rank == s.Rank
}

// Attempted is the attempt that it is of.
func (s JobReport) Attempted() JobAttempt { return JobAttempt{JobID: s.JobID, Attempt: s.Attempt} }

// NodeReport is what the daemon of a node says of what runs there.
type NodeReport struct {
	Isolation capacity.Isolation // how well it keeps holders apart
	Holds     []string           // the allocations that have work there
	Cleaned   []Cleaned          // what it found where such work has ended
	Jobs      []JobReport        // all attempts that it knows
	OverHolds []string           // of NodeOrders.UnlistedHolds, those that it ended once and does not open again
	GoneJobs  []JobAttempt       // of NodeOrders.UnlistedJobs, those that it does not have
}

// NodeOrders is what the daemon of a node is to do.
type NodeOrders struct {
	Ended  []string     // the allocations whose work there is to end
	Start  []JobOrder   // attempts that are to be started, unless it knows them
	Place  SettledPool  // where those are
	Stop   []JobStop    // attempts that are to end
	Forget []JobAttempt // attempts that have ended, of which all is known here, and those that nobody knows
	Leases []Lease      // of those of its holds that go on
	// UnlistedHolds and UnlistedJobs are what goes on there by what is known here, and was not listed: the daemon is asked
	// whether that is over.
	UnlistedHolds []string
	UnlistedJobs  []JobAttempt
}

// JobOrder is an attempt that a node's daemon is to start.
type JobOrder struct {
	Job        job.Job // with its input
	Rank       int     // of the node
	Allocation allocation.Allocation
}

// SettledPool is a LiveReader of one pool, with the nodes that something is to be started on.
type SettledPool struct {
	At    time.Time
	State PoolState
}

// Now is when the pool was looked at.
func (s SettledPool) Now() time.Time { return s.At }

// LiveState returns the pool, which is the only one that is known.
func (s SettledPool) LiveState(id string) (PoolState, error) {
	if s.State.Pool.ID != id {
		return PoolState{}, ErrNotFound
	}
	return s.State, nil
}
