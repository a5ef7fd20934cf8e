package allocation

import (
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// Work is a job or pod that a cluster's own scheduler placed in an observed pool. The
// zero value is none.
type Work struct {
	ID string // the cluster's, unique in its pool
	capacity.WorkOwner
	QueuedAt time.Time // when it could have begun for all that its owner had set
	// WaitedFor is what it waited for last before it began, but nodes that booted: one of
	// the codes below; empty for nothing.
	WaitedFor string
}

// Label is the id as the cluster's users know it: without "@" and digits at its end, which
// tell the runs of one job apart.
func (w Work) Label() string {
	name := strings.TrimRight(w.ID, "0123456789")
	if label, marked := strings.CutSuffix(name, "@"); marked && name != w.ID {
		return label
	}
	return w.ID
}

// What work waits for. Only the wait for a boot could have been spared by a warmer node.
const (
	WaitedBoot         = "boot" // never Work.WaitedFor: RequestedAt and ActiveAt tell of it
	WaitedResources    = "resources"
	WaitedPriority     = "priority"
	WaitedLimits       = "limits"
	WaitedDependencies = "dependencies"
	WaitedOther        = "other"
	// WaitedQueue is something of these: it was seen to wait, and not what for.
	WaitedQueue = "queue"
	// WaitedUnwatched is what work waited for that was there before anybody watched: nobody
	// knows, and it is not counted as a start.
	WaitedUnwatched = "unwatched"
)

// Observed reports whether the allocation is work that a cluster's scheduler placed.
// It has no lease: it ends when the work does. It holds the GPUs of those of its nodes
// that were kept warm, and no place in the calendar.
func (a Allocation) Observed() bool { return a.Work.ID != "" }
