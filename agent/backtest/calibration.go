package backtest

// tally counts how often what was said to be likely came true.
type tally struct{ bins [tallyBins]tallyBin }

// tallyBins is how many steps of probability are told apart.
const tallyBins = 10

type tallyBin struct {
	n, seen int
	said    float64
}

func newTally() *tally { return &tally{} }

// addStatement counts one statement: the chance that was said, and whether it came true.
func (t *tally) addStatement(said float64, seen bool) {
	b := &t.bins[min(max(int(said*tallyBins), 0), tallyBins-1)]
	b.n++
	b.said += said
	if seen {
		b.seen++
	}
}

// Calibrated is one step of probability: of what was said with about this
// chance, how much came true.
type Calibrated struct {
	Said float64 `json:"said"` // mean chance, 0 to 1
	Seen float64 `json:"seen"` // share that came true, 0 to 1
	N    int     `json:"n"`    // statements
}

// calibrationSteps returns the steps in which anything was said.
func (t *tally) calibrationSteps() []Calibrated {
	all := []Calibrated{}
	for _, b := range t.bins {
		if b.n > 0 {
			n := float64(b.n)
			all = append(all, Calibrated{Said: roundFigure(b.said / n), Seen: roundFigure(float64(b.seen) / n), N: b.n})
		}
	}
	return all
}
