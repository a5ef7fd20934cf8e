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
	// Damaged says that what is stored cannot be read: none is next until that is decided anew.
	Damaged bool
}

// JobTurn is a job whose turn it is, and for how long it is predicted to run.
type JobTurn struct {
	JobID     string        `json:"id"`
	Predicted job.Predicted `json:"predicted"`
}
