package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/job"
)

// JobTurns are the jobs of a pool whose turn is next, in order, as the scheduler decided it last.
type JobTurns struct {
	PoolID    string
	DecidedAt time.Time
	Next      []JobTurn
	Ahead     []JobAhead // by when they start
	// Damaged says that what is stored cannot be read: none is next until that is decided anew.
	Damaged bool
}

// JobAhead is a job that may not start yet, and what it should find ready when it does: a node on each of some slots.
type JobAhead struct {
	JobID string    `json:"id"`
	At    time.Time `json:"at"` // when it is predicted to start
	Until time.Time `json:"until"`
	Slots []int     `json:"slots"`
	GPUs  []int     `json:"gpus"` // on each of them
}

// JobTurn is a job whose turn it is, and for how long it is predicted to run.
type JobTurn struct {
	JobID     string        `json:"id"`
	Predicted job.Predicted `json:"predicted"`
}
