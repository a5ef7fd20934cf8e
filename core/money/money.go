// Package money counts US dollars exactly, in millionths, and prices time.
package money

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MicroUSD is an amount of money in millionths of a US dollar. Money is never a
// float.
type MicroUSD int64

// USD is one US dollar.
const USD MicroUSD = 1_000_000

// signAndSize splits the amount into its sign and its size.
func (m MicroUSD) signAndSize() (sign string, size uint64) {
	if m < 0 {
		return "-", -uint64(m)
	}
	return "", uint64(m)
}

// String renders the amount with cents, rounded half away from zero.
func (m MicroUSD) String() string {
	sign, size := m.signAndSize()
	cents := (size + 5_000) / 10_000
	return fmt.Sprintf("%s$%d.%02d", sign, cents/100, cents%100)
}

// Decimal renders the amount as a plain decimal string with six places, the
// exact form used on the wire.
func (m MicroUSD) Decimal() string {
	sign, size := m.signAndSize()
	return fmt.Sprintf("%s%d.%06d", sign, size/uint64(USD), size%uint64(USD))
}

// For returns the cost of using something priced m per hour for d, rounded to
// the nearest micro-dollar, half away from zero. The product is formed in 128
// bits: a thousand GPUs for an hour would not fit in 64. What no MicroUSD can
// hold becomes the largest one. d must not be negative.
func (m MicroUSD) For(d time.Duration) MicroUSD {
	sign, size := m.signAndSize()
	hi, lo := bits.Mul64(size, uint64(max(d, 0)))
	lo, carry := bits.Add64(lo, uint64(time.Hour)/2, 0)
	hi += carry
	cost := uint64(math.MaxInt64)
	if hi < uint64(time.Hour) {
		quotient, _ := bits.Div64(hi, lo, uint64(time.Hour))
		cost = min(cost, quotient)
	}
	if sign != "" {
		return -MicroUSD(cost)
	}
	return MicroUSD(cost)
}
