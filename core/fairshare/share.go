package fairshare

import "github.com/forewarm/forewarm/core/quota"

// doubt is the GPU-seconds of speculative reservations, an hour of one GPU, before which a
// measured calibration says little.
const doubt = 3600

// Factor is how many times the idle time of the tenant's speculative reservations counts:
//
//	1 + (MaxIdle − 1) · max(0, Expected − Claimed) / (Expected + 1 GPU-hour)
//
// A tenant whose speculative reservations come true as often as it says pays for idle time once.
// Who states more than comes true, by asking for more or by claiming to be surer,
// raises Expected alone: the factor rises, and so does the idle time it is
// applied to. Understating does not lower it below 1. An inflated forecast
// therefore never lowers its maker's share, and never serves it sooner.
func (p Policy) Factor(u Usage) float64 {
	excess := max(0, u.Expected-u.Claimed) / (max(u.Expected, 0) + doubt)
	return 1 + max(p.MaxIdle-1, 0)*min(excess, 1)
}

// Share is the tenant's dominant share of the capacity as of u.At: the largest,
// over the resources, of the decayed average that it used divided by what there
// is, divided by its weight (Ghodsi et al., Dominant Resource Fairness, NSDI
// 2011, §4.3). A resource of which there is none does not count; a weight below 1
// counts as 1.
func (p Policy) Share(u Usage, capacity quota.Vector, weight int) float64 {
	dominant := 0.0
	for r, there := range capacity {
		if there > 0 {
			average := (u.Held[r] + u.Idle[r] + u.Entered[r]) / p.timeConstant()
			dominant = max(dominant, average/float64(there))
		}
	}
	return dominant / float64(max(weight, 1))
}
