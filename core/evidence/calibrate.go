package evidence

import "math"

// Probabilities are kept this far from 0 and 1, so that no single surprise has an
// unbounded price.
const (
	surest = 0.99
	floor  = 1 - surest
)

func logit(p float64) float64 {
	p = clampFinite(p, floor, surest)
	return math.Log(p / (1 - p))
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// platt maps stated probabilities onto what came true: logit p' = A + B·logit p,
// by online Newton steps on log loss (Platt 1999; the forgetting and the pull back
// to the prior, A = 0 and B = 1, keep it alive and sane). What is stated is taken
// at its word until there is a record.
type platt struct {
	A  float64 `json:"a"`
	B  float64 `json:"b"` // never below 0: a higher stated chance is never a lower one
	AA float64 `json:"aa"`
	AB float64 `json:"ab"`
	BB float64 `json:"bb"` // the curvature of the log loss seen so far
}

// plattPrior is the curvature of the prior: about a dozen closes outweigh it.
const plattPrior = 2

func newPlatt() platt { return platt{B: 1, AA: plattPrior, BB: plattPrior} }

func (p platt) calibrate(stated float64) float64 { return logistic(p.A + p.B*logit(stated)) }

func (p *platt) addOutcome(stated float64, came bool) {
	x, said := logit(stated), p.calibrate(stated)
	keep := math.Exp2(-1.0 / halfLife)
	h := said * (1 - said)
	p.AA = keep*p.AA + (1-keep)*plattPrior + h
	p.AB = keep*p.AB + h*x
	p.BB = keep*p.BB + (1-keep)*plattPrior + h*x*x
	miss := -said
	if came {
		miss = 1 - said
	}
	ga := miss - (1-keep)*plattPrior*p.A
	gb := miss*x - (1-keep)*plattPrior*(p.B-1)
	if det := p.AA*p.BB - p.AB*p.AB; det > 0 {
		p.A = clampFinite(p.A+(p.BB*ga-p.AB*gb)/det, -5, 5)
		p.B = clampFinite(p.B+(p.AA*gb-p.AB*ga)/det, 0, 3)
	}
}

func (p platt) isSound() bool {
	return areFinite(p.A, p.B, p.AA, p.AB, p.BB) && math.Abs(p.A) <= 5 && p.B >= 0 && p.B <= 3 && p.AA > 0 && p.BB > 0
}
