package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
)

// JobFilter narrows a list of jobs. Zero fields do not narrow.
type JobFilter struct {
	PoolID      string
	State       []string
	ArrayID     string
	Name        string
	SubmittedBy string
	UserID      string
	Live        bool // nothing that is over
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
	OutputTail = 4 << 20
)

// JobOrdered is the type of the event that the nodes of a job are to start it.
const JobOrdered = "job.ordered"

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

// JobReader reads jobs and what is known of their attempts.
type JobReader interface {
	Job(s Scope, id string) (job.Job, error)
	// Jobs returns a page of jobs, ordered by id, which is by submission. They come without
	// their input.
	Jobs(s Scope, f JobFilter, p Page) ([]job.Job, error)
	// JobsByID returns those of some jobs that there are, by id, without their input.
	JobsByID(ids []string) (map[string]job.Job, error)
	// LiveJobs returns the jobs of a pool that are not over, without their input, ordered by id.
	LiveJobs(poolID string) ([]job.Job, error)
	// CountLiveJobs is their number, by organization.
	CountLiveJobs(poolID string) (map[string]int, error)
	// JobRanks returns the ranks of an attempt, in order.
	JobRanks(jobID string, attempt int) ([]job.Rank, error)
	// RanksOn returns the ranks on a node that have not ended.
	RanksOn(nodeID string) ([]job.Rank, error)
	// JobOutput returns up to limit parts of what is kept of a rank's output and ends after an
	// offset, in order.
	JobOutput(jobID string, attempt, rank int, after int64, limit int) ([]JobOutput, error)
	// JobOutputEnd is where a rank's output ends, as far as it is known.
	JobOutputEnd(jobID string, attempt, rank int) (int64, error)
}

// JobCommand asks for jobs: what is the same in all of an array.
type JobCommand struct {
	Needs   AllocateRequest // pool, model, needs, GPUs and layout
	Job     job.Job         // all that is asked for; without a runtime it has what its pool allows, at most a day
	Held    bool
	Indices []int // of an array; nil: one job
}

// JobReport is what the daemon of a node says of an attempt of a job there.
type JobReport struct {
	JobID   string
	Attempt int
	Rank    int
	Ended   bool
	End     job.End
}

// JobAttempt names an attempt of a job.
type JobAttempt struct {
	JobID   string
	Attempt int
}

// Check returns *InvalidError for a command that nobody could run, and fills in its GPUs.
func (c *JobCommand) Check() error {
	if c.Needs.GPUs == 0 && c.Needs.Layout == (capacity.Layout{}) {
		c.Needs.GPUs = 1
	}
	if err := c.Needs.Check(); err != nil {
		return err
	}
	switch {
	case len(c.Job.Command.Arguments) == 0 || c.Job.Command.Arguments[0] == "":
		return &InvalidError{Field: "command", Rule: "must begin with the name of a program"}
	case c.Job.MaxRuntime < 0 || c.Job.Grace < time.Second:
		return &InvalidError{Field: "max_runtime_seconds", Rule: "must be at least 1 s, as must be grace_seconds"}
	case len(c.Indices) > MostArray:
		return &InvalidError{Field: "array", Rule: fmt.Sprintf("must have at most %d indices", MostArray)}
	}
	return c.checkText()
}

// checkText refuses what no kernel takes as an argument or a variable.
func (c *JobCommand) checkText() error {
	command := c.Job.Command
	text := append([]string{command.Directory}, command.Arguments...)
	size := 0
	for name, value := range command.Environment {
		if name == "" || strings.Contains(name, "=") {
			return &InvalidError{Field: "environment", Rule: fmt.Sprintf("%q names no variable", ClipText(name, 40))}
		}
		text = append(text, name, value)
	}
	for _, t := range text {
		if strings.Contains(t, "\x00") {
			return &InvalidError{Field: "command", Rule: "must have no zero bytes, nor its directory and environment"}
		}
		size += len(t)
	}
	if whole := size + len(command.Input); len(c.Indices)*whole > mostArrayBytes {
		return &InvalidError{Field: "array", Rule: fmt.Sprintf("must have at most %d indices, with so large a command, "+
			"environment and input", mostArrayBytes/whole), Fix: "put what is large into a file that the nodes share"}
	}
	if size > MostCommand {
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
}

// Error names the pool and its bound.
func (e *QueueFullError) Error() string {
	if e.OfOne {
		return fmt.Sprintf("your organization has as many jobs waiting or running in pool %s as one may: %d", e.Pool, e.Most)
	}
	return fmt.Sprintf("pool %s has as many jobs waiting or running as it takes: %d", e.Pool, e.Most)
}

// QueuedJob is a job that waits.
type QueuedJob struct {
	job.Job
	Position int    // from 1; 0: it may not start yet, whatever is free
	Code     string // why it waits
	Detail   string
}

// Why a job waits.
const (
	WaitsForGPUs = "gpus"
	WaitsForJob  = "dependency"
	WaitsForTime = "not_before"
)

// JobOrder is an attempt that a node's daemon is to start.
type JobOrder struct {
	Job        job.Job // with its input
	Rank       int     // of the node
	Allocation allocation.Allocation
}
