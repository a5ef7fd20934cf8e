// Package priority says which request is served next and which gives way first.
// Every order in which requests for the same GPUs take turns is here, each as
// one comparison for slices.SortFunc, negative when a comes before b. All end
// with the id, so that an order never depends on how its input was sorted. How
// much of a pool somebody has had lately is computed by package fairshare,
// whose shares these orders compare.
//
// ServeByShare and YieldByShare are the two ends of one rule. What is free goes
// to the smallest weighted dominant share, as progressive filling does (Ghodsi
// et al., Dominant Resource Fairness, NSDI 2011, algorithm 1); the share is of
// decayed use, so that those who had little lately come first (Kay and Lauder,
// A Fair Share Scheduler, CACM 31(1), 1988). What has to be given back comes
// from the largest share. Taking it elsewhere would raise the one share that is
// ahead, or lower one that is behind, and the next decision would have to take
// it back again.
package priority

import (
	"cmp"
	"time"
)

// Claimant is somebody who waits for GPUs, or holds a place that can be taken. An
// order looks at the fields that it names; the others may be zero.
type Claimant struct {
	ID          string
	Speculative bool      // yields to promises; false is a promise
	Share       float64   // fair share that its organization has had, of package fairshare
	Probability float64   // of being used, 0 to 1
	Start       time.Time // when its window begins
	Since       time.Time // when it asked
}

// ServeByShare is the order of a waitlist: promises before speculation, then the
// smallest share, then who has waited longest.
func ServeByShare(a, b Claimant) int {
	return cmp.Or(compareClass(a, b), cmp.Compare(a.Share, b.Share), a.Since.Compare(b.Since),
		cmp.Compare(a.ID, b.ID))
}

// ServeByStart is the order of those who have a place: the earliest start first,
// which misses the fewest starts of any order where serving each takes as long
// (earliest deadline first: Liu and Layland, JACM 20(1), 1973).
func ServeByStart(a, b Claimant) int {
	return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
}

// ServeByArrival is the order of those who want GPUs at once: first come, first
// served.
func ServeByArrival(a, b Claimant) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}

// YieldByShare is the order in which speculation gives up its places to a promise:
// the largest share first, then what is least likely to be used.
func YieldByShare(a, b Claimant) int {
	return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Probability, b.Probability), cmp.Compare(a.ID, b.ID))
}

// compareClass puts promises before speculation.
func compareClass(a, b Claimant) int {
	switch {
	case a.Speculative == b.Speculative:
		return 0
	case b.Speculative:
		return -1
	default:
		return 1
	}
}
