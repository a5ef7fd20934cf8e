package forecast

import "math"

// A look takes hundreds of logarithms and powers. Of logarithms six digits are needed: between two
// powers of two they are a polynomial that meets the function at Chebyshev's points, both ends among them, in under
// half the time of package math's. Of powers, package math's to the base e is the fastest.

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

// exp2 is two to the power of x.
func exp2(x float64) float64 { return math.Exp(x * math.Ln2) }

// logistic is the chance of log-odds.
func logistic(z float32) float32 { return float32(1 / (1 + math.Exp(-float64(z)))) }
