package ledger

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
)

// JobItem is one submission of a batch.
type JobItem = Item[JobCommand]

// JobOutcome is what became of one submission of a batch: its jobs, or why there are none, which is any error of
// a submission that comes alone, ErrNotTried, or what its Item said.
type JobOutcome struct {
	Jobs []job.Job
	Err  error
}

// JobBatchLockHint is BatchLockHint of submissions.
func JobBatchLockHint(batch []JobItem) *LockHint {
	return lockHintOf(batch, func(c JobCommand) string { return c.Needs.Pool })
}

// CheckJobBatch returns *InvalidError for a batch that is empty, or of more than one transaction writes: MaxBatch
// submissions, and the jobs and bytes of the largest array.
func CheckJobBatch(batch []JobItem) error {
	if len(batch) == 0 || len(batch) > MaxBatch {
		return &InvalidError{Field: "items", Rule: fmt.Sprintf("must be between 1 and %d", MaxBatch)}
	}
	jobs, size := 0, 0
	for _, item := range batch {
		if item.Invalid == nil {
			n := max(1, len(item.Request.Indices))
			jobs, size = jobs+n, size+n*item.Request.size()
		}
	}
	switch fix := "send the rest in another batch"; {
	case jobs > MostArray:
		return &InvalidError{Field: "items", Rule: fmt.Sprintf("must make at most %d jobs, those of arrays counted",
			MostArray), Fix: fix}
	case size > mostArrayBytes:
		return &InvalidError{Field: "items", Rule: fmt.Sprintf("must have at most %d bytes of commands, environments and "+
			"inputs, those of arrays counted for each index", mostArrayBytes), Fix: fix}
	}
	return nil
}

// texts are all that a kernel is given with a command, but for its input.
func (c *JobCommand) texts() []string {
	command := c.Job.Command
	all := append([]string{command.Directory, command.Image}, command.Arguments...)
	for _, m := range command.Mounts {
		all = append(all, m.Source, m.Target)
	}
	for name, value := range command.Environment {
		all = append(all, name, value)
	}
	return all
}

// size is how many bytes of a job's row are its command, environment and input.
func (c *JobCommand) size() int {
	n := len(c.Job.Command.Input)
	for _, text := range c.texts() {
		n += len(text)
	}
	return n
}
