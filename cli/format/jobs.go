package format

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// JobCounts is how far jobs are, in words; empty: there are none.
func JobCounts(n contract.JobCounts) string {
	var all []string
	for _, part := range []struct {
		n    int
		text string
	}{{n.Completed, "completed"}, {n.Failed, "failed"}, {n.Cancelled, "cancelled"}, {n.Running + n.Preempted, "running"},
		{n.Scheduled, "scheduled"}, {n.Pending, "waiting"}, {n.Held, "held"}} {
		if part.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.Join(all, ", ")
}
