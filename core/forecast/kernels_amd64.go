package forecast

// In assembly, which does as the functions of kernels.go of these names do. Slices are not checked: they must be as
// long as those functions ask for.

//go:noescape
func multiplyRows(to, weights, x []float32, stride int)

//go:noescape
func stepRow(weights, squares, steps, x []float32, e float32)

//go:noescape
func addSlots(sums *[slot]float32, table []float32, at []uint32)

//go:noescape
func stepSlots(weights, squares []float32, at []uint32, errors *[slot]float32, rate float32)

//go:noescape
func logistics(to, odds *[slot]float32)
