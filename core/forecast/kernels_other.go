//go:build !amd64

package forecast

func multiplyRows(to, weights, x []float32, stride int) { multiplyRowsInGo(to, weights, x, stride) }

func stepRow(weights, squares, steps, x []float32, e float32) {
	stepRowInGo(weights, squares, steps, x, e)
}

func addSlots(sums *[slot]float32, table []float32, at []uint32) { addSlotsInGo(sums, table, at) }

func stepSlots(weights, squares []float32, at []uint32, errors *[slot]float32, rate float32) {
	stepSlotsInGo(weights, squares, at, errors, rate)
}

func logistics(to, odds *[slot]float32) { logisticsInGo(to, odds) }
