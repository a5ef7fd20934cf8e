package main

import "math"

// grid are the steps above the demand for which the hazard model predicts.
var grid = [steps]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}

const (
	steps = 14
	// tableBits is the size of the hashed table, as a power of two.
	tableBits = 20
	// learningRate and damping are AdaGrad's.
	learningRate, damping = 0.005, 1e-3
)

// hazard predicts by logistic regression on hashed features how many jobs will be
// credited to a level within the window. All tenants share it.
type hazard struct {
	table [1 << tableBits]weight
}

// weight is a weight and the sum of the squares of its errors.
type weight struct{ value, squares float32 }

func newHazard() *hazard { return &hazard{} }

// predictLogOdds returns the log-odds of each step, which never rise.
func (h *hazard) predictLogOdds(e *example) [steps]float64 {
	var odds [steps]float64
	least := math.Inf(1)
	for j := range odds {
		least = math.Min(least, float64(h.sumWeights(&e.hashes[j])))
		odds[j] = least
	}
	return odds
}

func (h *hazard) sumWeights(hashes *[features]uint32) float32 {
	sum := float32(0)
	for _, i := range hashes {
		sum += h.table[i].value
	}
	return sum
}

// learnExample takes a gradient step of the cross-entropy for every step of an example.
func (h *hazard) learnExample(e *example) {
	for j := range e.hashes {
		missed := 1/(1+float32(math.Exp(-float64(h.sumWeights(&e.hashes[j]))))) - e.credits[j]
		square, step := missed*missed, learningRate*missed
		for _, i := range e.hashes[j] {
			w := &h.table[i]
			w.squares += square
			w.value -= step / float32(math.Sqrt(float64(w.squares+damping)))
		}
	}
}
