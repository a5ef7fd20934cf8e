package ledger

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
)

// TakenShare is a workload's share of a pool that is less than it has booked.
type TakenShare struct {
	Workload capacity.Workload
	Share    int // GPUs that it would have
	Booked   int // GPUs that it has booked, at the instant when they are most
}

// ShareTakenError says that a pool was not split as asked, because of what is
// booked already.
type ShareTakenError struct {
	Pool  string
	Taken []TakenShare
	// Closest is the online share next to the one asked for, in thousandths, by
	// which everything booked is within its share; 0: none, but not to split.
	Closest int
}

// Error names the first share.
func (e *ShareTakenError) Error() string { return e.Taken[0].describeShare(e.Pool) }

func (t TakenShare) describeShare(pool string) string {
	return fmt.Sprintf("%s work has booked %s of pool %s, and would have a share of %d", t.Workload,
		phrase.Count(t.Booked, "GPU"), pool, t.Share)
}

// Reasons are the shares as blockers.
func (e *ShareTakenError) Reasons() []admission.Reason {
	var reasons []admission.Reason
	for _, t := range e.Taken {
		reasons = append(reasons, admission.Reason{Code: admission.WorkloadShareExceeded, Unit: "gpus",
			Limit: int64(t.Share), Asked: int64(t.Booked),
			Message: t.describeShare(e.Pool)})
	}
	return reasons
}

// DescribeOverhang says what is beyond its share; nothing for nil.
func (e *ShareTakenError) DescribeOverhang() string {
	if e == nil {
		return ""
	}
	var parts []string
	for _, t := range e.Taken {
		parts = append(parts, fmt.Sprintf("%s has %s booked beyond its share of %d", t.Workload,
			phrase.Count(t.Booked-t.Share, "GPU"), t.Share))
	}
	return ": " + strings.Join(parts, ", ")
}
