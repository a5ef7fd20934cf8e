package wait

import (
	"iter"
	"time"
)

// LikelyReady is when the last of some nodes is likely to be ready, at the median of
// boots: asked is when each of those that are not ready was asked for, or can be. A
// boot that lasts longer than that is taken to end now, so that whoever flags what
// will be late does so once, and not back and forth as the boot goes on.
func LikelyReady(now time.Time, asked iter.Seq[time.Time], median time.Duration) time.Time {
	latest := now
	for at := range asked {
		if ready := at.Add(median); ready.After(latest) {
			latest = ready
		}
	}
	return latest
}
