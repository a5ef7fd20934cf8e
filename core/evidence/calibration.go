package evidence

import "math"

// The weight of evidence in a forecast: at first a quarter, as the prior of trust,
// and never more than half.
const (
	firstWeight = priorTrust
	MaxWeight   = 0.5
	leastWeight = 0.01 // in the shadow, so that a record can be regained
	// maxRatio bounds how far one record moves the odds, either way.
	maxRatio = 150
)

// calibration is how a kind speaks in forecasts: what its stated chances are worth, and
// how its weight is shared with statistics. The weight follows the likelihoods of
// both (Vovk's aggregating algorithm for log loss), so that what the mixture loses
// against statistics stays below ln(1/(1-firstWeight)) and a hundredth per close,
// however wrong the evidence is.
type calibration struct {
	Platt  platt      `json:"platt"`
	Base   float64    `json:"base"` // mean log-odds that statistics gave where this kind spoke
	N      float64    `json:"n"`    // decayed closes behind Base
	Weight float64    `json:"weight"`
	Record gainRecord `json:"standing"`
}

func newCalibration() calibration { return calibration{Platt: newPlatt(), Weight: firstWeight} }

// likelihoodRatio is the calibrated likelihood ratio of a stated chance: by how much hearing
// it changes the odds of what statistics expect. It is the odds that the kind's
// record gives such a statement over the odds that statistics usually have when
// the kind speaks; with no record yet, when they have it now.
func (v calibration) likelihoodRatio(stated, baseline float64) float64 {
	base := (priorWeight*logit(baseline) + v.Base*v.N) / (priorWeight + v.N)
	return clampFinite(math.Exp(logit(v.Platt.calibrate(stated))-base), 1.0/maxRatio, maxRatio)
}

func (v calibration) blendedChance(stated, baseline float64) float64 {
	return clampFinite(logistic(logit(baseline)+math.Log(v.likelihoodRatio(stated, baseline))), floor, surest)
}

// scoreOutcome learns from one close and returns by how much log loss was lower with the
// evidence than without.
func (v *calibration) scoreOutcome(stated, baseline float64, came bool) float64 {
	with, without := likelihood(v.blendedChance(stated, baseline), came), likelihood(baseline, came)
	v.Weight = clampFinite(v.Weight*with/(v.Weight*with+(1-v.Weight)*without), leastWeight, MaxWeight)
	keep := math.Exp2(-1.0 / halfLife)
	v.Base = (keep*v.N*v.Base + logit(baseline)) / (keep*v.N + 1)
	v.N = keep*v.N + 1
	v.Platt.addOutcome(stated, came)
	return math.Log(with / without)
}

func likelihood(p float64, came bool) float64 {
	if p = clampFinite(p, floor, surest); came {
		return p
	}
	return 1 - p
}

func (v calibration) isSound() bool {
	return v.Platt.isSound() && areFinite(v.Base, v.N, v.Weight) && v.N >= 0 && v.N <= most && v.Weight >= 0 &&
		v.Weight <= MaxWeight && v.Record.isSound()
}
