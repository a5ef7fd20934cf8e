package forecast

import "math"

// cell holds weighted sums over closed windows.
type cell struct {
	Windows float64 `json:"n"` // weight of the windows counted
	Sum     float64 `json:"s"` // of their GPUs
	Squares float64 `json:"q"` // of the squares of their GPUs
}

// addWindow counts one window; what was there before keeps the share keep.
func (c cell) addWindow(gpus, keep float64) cell {
	return cell{Windows: c.Windows*keep + 1, Sum: c.Sum*keep + gpus, Squares: c.Squares*keep + gpus*gpus}
}

// addSilence counts n empty windows at once: add(0, keep), n times over.
func (c cell) addSilence(n int64, keep float64) cell {
	if keep == 1 {
		c.Windows += float64(n)
		return c
	}
	left := math.Pow(keep, float64(n))
	return cell{Windows: c.Windows*left + (1-left)/(1-keep), Sum: c.Sum * left, Squares: c.Squares * left}
}

// shrinkTo returns mean and variance of a window of the cell with weight windows
// of the prior mixed in. The spread between cell and prior is part of the
// variance, so a bin that differs from the rest stays honest about it while it
// has little data.
func (c cell) shrinkTo(prior cell, weight float64) (mean, variance float64) {
	if prior.Windows <= 0 {
		return 0, 0
	}
	n := c.Windows + weight
	mean = (c.Sum + weight*prior.Sum/prior.Windows) / n
	square := (c.Squares + weight*prior.Squares/prior.Windows) / n
	return mean, math.Max(0, square-mean*mean)
}

// isSound reports whether the sums can have come from counting.
func (c cell) isSound() bool {
	return c.Windows >= 0 && c.Sum >= 0 && c.Squares >= 0 &&
		!math.IsInf(c.Windows, 0) && !math.IsInf(c.Sum, 0) && !math.IsInf(c.Squares, 0)
}
