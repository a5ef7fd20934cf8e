package ledger

import (
	"context"

	"github.com/forewarm/forewarm/core/scheduler"
)

// CycleRecorder keeps looks at the queues of jobs, so that they can be decided again later. It is told of a look once
// its transactions are over, returns soon, keeps nothing of the record that it was given beyond the call, and never
// fails: a look does not depend on whether it can be kept. It is safe for concurrent use.
type CycleRecorder interface {
	RecordCycles(ctx context.Context, r scheduler.Record)
}
