package forecast

import "math"

// Score says how well one forecast met what happened. Smaller is better, but for
// Inside.
type Score struct {
	Pinball float64 `json:"pinball"` // mean pinball loss of the three quantiles, in GPUs
	Brier   float64 `json:"brier"`   // squared error of the probability that any arrive
	LogLoss float64 `json:"log_loss"`
	Inside  bool    `json:"inside"` // the number lay within P10 and P90
}

// Pinball returns the loss of predicting the quantile p (0 to 1) when actual
// happened: p times a shortfall, or 1-p times an excess.
func Pinball(p, predicted, actual float64) float64 {
	return math.Max(p*(actual-predicted), (p-1)*(actual-predicted))
}

// Brier returns the squared error of a stated probability.
func Brier(probability float64, happened bool) float64 {
	outcome := 0.0
	if happened {
		outcome = 1
	}
	return (probability - outcome) * (probability - outcome)
}

// certain is how near to 0 or 1 a stated probability is believed: one mistake
// costs a finite amount, at most 13.8, so that a mean can recover from it.
const certain = 1e-6

// LogLoss returns minus the natural logarithm of the probability that was given
// to what happened, with the stated probability clamped to [1e-6, 1-1e-6]. One
// that is not a number counts as 1/2.
func LogLoss(probability float64, happened bool) float64 {
	if math.IsNaN(probability) {
		probability = 0.5
	}
	p := math.Max(certain, math.Min(1-certain, probability))
	if !happened {
		p = 1 - p
	}
	return -math.Log(p)
}

// Skill returns which share of a reference's Brier score a forecast saved: 1 is
// perfect, 0 no better than the reference, below 0 worse (Murphy, 1988). Against
// a perfect reference it is not defined, and ok is false.
func Skill(brier, reference float64) (skill float64, ok bool) {
	if !(reference > 0) {
		return 0, false
	}
	return 1 - brier/reference, true
}

// Evaluate scores a forecast against the GPUs that arrived.
func (s Summary) Evaluate(actual int) Score {
	a := float64(actual)
	loss := Pinball(0.1, float64(s.P10), a) + Pinball(0.5, float64(s.P50), a) + Pinball(0.9, float64(s.P90), a)
	return Score{
		Pinball: loss / 3, Brier: Brier(s.Any, actual > 0), LogLoss: LogLoss(s.Any, actual > 0),
		Inside: s.P10 <= actual && actual <= s.P90,
	}
}

// Scorer keeps the running mean of scores. The zero value is ready, and it may
// be stored as JSON.
type Scorer struct {
	N       int64   `json:"n"`
	Pinball float64 `json:"pinball"`  // mean
	Brier   float64 `json:"brier"`    // mean
	LogLoss float64 `json:"log_loss"` // mean
	Inside  float64 `json:"inside"`   // share
}

// Add takes one more score into the means.
func (s *Scorer) Add(score Score) {
	s.N++
	inside := 0.0
	if score.Inside {
		inside = 1
	}
	s.Pinball += (score.Pinball - s.Pinball) / float64(s.N)
	s.Brier += (score.Brier - s.Brier) / float64(s.N)
	s.LogLoss += (score.LogLoss - s.LogLoss) / float64(s.N)
	s.Inside += (inside - s.Inside) / float64(s.N)
}
