//go:build clouds

package kubernetes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// eyes are what an observer sees a cluster with. They change nothing in it.
type eyes struct {
	cluster *Cluster

	mu     sync.Mutex
	served map[string]servedKind // what discovery said, by group and resource
	// buffersServed is whether some controller acts on CapacityBuffers; nil: not known.
	buffersServed *bool
	// yielding is since when placeholders give way for a pod. A restart forgets it, and gives
	// way as long again.
	yielding map[types.UID]time.Time
}

func (e *eyes) config() Config { return e.cluster.config }

func (e *eyes) api() api { return e.cluster.api }

func (e *eyes) now() time.Time { return e.cluster.clock.Now() }

// keepUntil is until when a keeping lasts that begins now: one that waits for its node
// lasts until that may be given up, and then as any other.
func (e *eyes) keepUntil(placed bool) time.Time {
	until := e.now().Add(e.config().KeepFor)
	if !placed {
		until = until.Add(e.config().PendingTimeout)
	}
	return until.UTC()
}

// isLive reports whether the record may have a node. One that only was asked for may be
// about to.
func (e *eyes) isLive(s *stored) bool {
	if s.Way == "" {
		return !s.Ended && e.now().Sub(s.object.CreationTimestamp.Time) < e.config().PendingTimeout
	}
	return !s.Ended && e.now().Before(s.KeptUntil)
}
