package forecast

import "math"

// The innermost loops of a look, over the rows of a matrix or of a table. They are written here in Go, and for
// amd64 also in assembly, which does four numbers at a time with the instructions that each such processor has.
// Both add in the same order and round at the same places, so that they give the same numbers to the last bit.

// multiplyRowsInGo writes into to what rows of weights make of x: a row begins every stride weights, and is as long
// as x. It adds in four strands.
func multiplyRowsInGo(to, weights, x []float32, stride int) {
	for j := range to {
		w := weights[j*stride:][:len(x)]
		var a, b, c, d float32
		i := 0
		for ; i+3 < len(x); i += 4 {
			a += w[i] * x[i]
			b += w[i+1] * x[i+1]
			c += w[i+2] * x[i+2]
			d += w[i+3] * x[i+3]
		}
		for ; i < len(x); i++ {
			a += w[i] * x[i]
		}
		to[j] = (a + c) + (b + d)
	}
}

// stepRowInGo takes a step of the weights of one unit against its error, and adds up their squared gradients. All
// slices are as long as x.
func stepRowInGo(weights, squares, steps, x []float32, e float32) {
	w, s, r := weights[:len(x)], squares[:len(x)], steps[:len(x)]
	for i, v := range x {
		g := e * v
		s[i] += g * g
		w[i] -= r[i] * g
	}
}

// addSlotsInGo adds to sums the slots of a table at some places.
func addSlotsInGo(sums *[slot]float32, table []float32, at []uint32) {
	for _, i := range at {
		w := (*[slot]float32)(table[i:])
		for k := range sums {
			sums[k] += w[k]
		}
	}
}

// stepSlotsInGo takes a step of AdaGrad against the errors, at some places of a table.
func stepSlotsInGo(weights, squares []float32, at []uint32, errors *[slot]float32, rate float32) {
	for _, i := range at {
		w, s := (*[slot]float32)(weights[i:]), (*[slot]float32)(squares[i:])
		for k, e := range errors {
			s[k] += e * e
			w[k] -= rate * e / float32(math.Sqrt(float64(s[k]+damping)))
		}
	}
}

// damping keeps AdaGrad's first steps from being too large.
const damping = 1e-3

// logisticsInGo writes the chances of log-odds, right to six digits. The power of two is that of the nearest whole
// number, times the first terms of the exponential's series.
func logisticsInGo(to, odds *[slot]float32) {
	for k, z := range odds {
		x := max(-farOdds, min(farOdds, z)) * -math.Log2E
		n := float32(math.RoundToEven(float64(x)))
		t := (x - n) * math.Ln2
		p := 1 + t*(1+t*(1./2+t*(1./6+t*(1./24+t*(1./120+t*(1./720))))))
		to[k] = 1 / (1 + p*math.Float32frombits(uint32(127+int32(n))<<23))
	}
}

// farOdds are log-odds beyond which a chance is sure, or none.
const farOdds = 88
