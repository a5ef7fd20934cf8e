package backtest

// reliability counts how often what was said to be likely came true: the bins of a
// reliability diagram.
type reliability struct {
	bins [reliabilityBins]reliabilityBin
}

// reliabilityBins is how many steps of probability are told apart.
const reliabilityBins = 10

type reliabilityBin struct {
	n, seen int
	said    float64
}

func newReliability() *reliability { return &reliability{} }

// addStatement counts one statement: the chance that was said, and whether it came true.
func (r *reliability) addStatement(said float64, seen bool) {
	b := &r.bins[min(max(int(said*reliabilityBins), 0), reliabilityBins-1)]
	b.n++
	b.said += said
	if seen {
		b.seen++
	}
}

// Calibrated is one step of probability: of what was said with about this
// chance, how much came true.
type Calibrated struct {
	Stated float64 `json:"said"` // mean chance, 0 to 1
	Seen   float64 `json:"seen"` // share that came true, 0 to 1
	N      int     `json:"n"`    // statements
}

// calibrationSteps returns the steps in which anything was said.
func (r *reliability) calibrationSteps() []Calibrated {
	all := []Calibrated{}
	for _, b := range r.bins {
		if b.n > 0 {
			n := float64(b.n)
			all = append(all, Calibrated{
				Stated: roundFigure(b.said / n), Seen: roundFigure(float64(b.seen) / n), N: b.n})
		}
	}
	return all
}
