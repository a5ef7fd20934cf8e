package evidence

import "math"

// The prior of a kind that nothing is known of: Beta(1, 3), one useful record in
// four, worth four records. The same four shrink a tenant's own record to the
// kind's. A record counts half after 30 more.
const (
	priorTrust  = 0.25
	priorWeight = 4
	halfLife    = 30
	// priorUsed is the share of a hold that is used in a trusted record.
	priorUsed = 0.7
	// maxSaved bounds how many times more jobs than it claimed a record can count
	// for.
	maxSaved = 16
)

// most is more than a decayed count of records can ever be: 1/(1 - 2^(-1/30)).
const most = 44

// track is the decayed record of a kind, over all tenants or with one.
type track struct {
	N     float64        `json:"n"`     // records
	Right float64        `json:"right"` // of them, each in the share of its jobs that it spared a wait
	Saved [sizes]float64 `json:"saved"` // waits that each judged size spared, per claimed job
	Idle  [sizes]float64 `json:"idle"`  // share of the held GPU time that idled
}

// result is what came of one record, relative to what it claimed.
type result struct{ saved, idle [sizes]float64 }

func (t *track) addResult(r result) {
	keep := math.Exp2(-1.0 / halfLife)
	t.N = keep*t.N + 1
	t.Right = keep*t.Right + min(1, r.saved[1])
	for i := range sizes {
		t.Saved[i] = keep*t.Saved[i] + r.saved[i]
		t.Idle[i] = keep*t.Idle[i] + r.idle[i]
	}
}

// belief is what a record is expected to come to.
type belief struct {
	trust float64 // mean of the Beta posterior on uplift
	hits  float64 // useful records that this rests on, those of the prior included
	result
}

// unknownBelief is what is believed of a kind without a record: it claims what it
// means, so that holding more spares nobody more.
func unknownBelief() belief {
	b := belief{trust: priorTrust, hits: priorWeight * priorTrust}
	for i, m := range multiples {
		b.saved[i] = priorTrust / max(1, m)
		b.idle[i] = 1 - priorUsed*b.saved[i]
	}
	return b
}

// updateBelief returns what is believed after the track, if prior was believed before.
func (t track) updateBelief(prior belief) belief {
	mix := func(before, sum float64) float64 { return (priorWeight*before + sum) / (priorWeight + t.N) }
	prior.hits = priorWeight*prior.trust + t.Right
	prior.trust = mix(prior.trust, t.Right)
	for i := range sizes {
		prior.saved[i] = mix(prior.saved[i], t.Saved[i])
		prior.idle[i] = mix(prior.idle[i], t.Idle[i])
	}
	return prior
}

// caution is how many standard deviations below its mean a record is taken: what is
// accepted because chance made it look good is a loss, and rare hits leave a mean
// uncertain by 1/sqrt(hits) of itself.
const caution = 0.25

// cautiousShare is the share of what is believed to be saved that is counted on.
func (b belief) cautiousShare() float64 { return max(0, 1-caution/math.Sqrt(b.hits)) }

// scaleBy returns the belief about a statement that is surer than usual, by a
// factor.
func (b belief) scaleBy(sure float64) belief {
	b.trust = math.Min(1, b.trust*sure)
	for i := range sizes {
		b.saved[i] *= sure
		b.idle[i] = clampFinite(1-(1-b.idle[i])*sure, 0, 1)
	}
	return b
}

func (t track) isSound() bool {
	for i := range sizes {
		if !areFinite(t.Saved[i], t.Idle[i]) || t.Saved[i] < 0 || t.Idle[i] < 0 || t.Saved[i] > maxSaved*most ||
			t.Idle[i] > most {
			return false
		}
	}
	return areFinite(t.N, t.Right) && t.N >= 0 && t.N <= most && t.Right >= 0 && t.Right <= t.N+1e-9
}
