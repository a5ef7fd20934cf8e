package forecast

import "math"

// A look takes hundreds of logarithms and powers, of which the model needs six digits. These two have that many and
// take a third of the time of package math's: between two powers of two they are polynomials that meet the function at
// Chebyshev's points, both ends among them.

// mantissaBits are those of a float64.
const mantissaBits = 52

// log2 is the binary logarithm, right to 1e-6 before it is rounded, and exact for powers of two; x is above 0.
func log2(x float64) float32 {
	b := math.Float64bits(x)
	t := float64(b&(1<<mantissaBits-1)) * (1.0 / (1 << mantissaBits))
	p := 0.257825025104 + t*(-0.157039407771+t*(0.0642612921145-t*0.0123706428372))
	p = 1.44269504089 + t*(-0.721329364867+t*(0.480283316354+t*(-0.354325258986+t*p)))
	return float32(float64(int(b>>mantissaBits)-1023) + t*p)
}

// exp2 is two to the power of x, right to 1e-9 of it; of powers beyond 1,000 it is that of 1,000.
func exp2(x float64) float64 {
	const far = 1000
	y := max(-far, min(far, x)) + far
	n := int(y)
	t := y - float64(n)
	p := 0.00961639037446 + t*(0.00133865314855+t*(0.000146183008173+t*2.07405827286e-05))
	p = 0.69314718056 + t*(0.240226496782+t*(0.0555043555441+t*p))
	return (1 + t*p) * math.Float64frombits(uint64(1023-far+n)<<mantissaBits)
}

// logistic is the chance of log-odds.
func logistic(z float32) float32 { return float32(1 / (1 + exp2(-math.Log2E*float64(z)))) }
