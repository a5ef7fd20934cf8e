package quota

import (
	"encoding/json"
	"fmt"
	"math"
)

// Unlimited is how a Limit without a bound is written as a number.
const Unlimited = -1

// Limit is an upper bound, or none: the zero Limit is unlimited, and AtMost(0)
// allows nothing. Limits can be compared with ==.
type Limit struct {
	n   int64
	set bool
}

// AtMost is the bound n. A negative n, such as Unlimited, is no bound.
func AtMost(n int64) Limit {
	if n < 0 {
		return Limit{}
	}
	return Limit{n: n, set: true}
}

// Int64 returns the bound, or Unlimited.
func (l Limit) Int64() int64 {
	if !l.set {
		return Unlimited
	}
	return l.n
}

// Bound returns the bound and whether there is one.
func (l Limit) Bound() (int64, bool) { return l.n, l.set }

// Allows reports whether n is within the bound.
func (l Limit) Allows(n int64) bool { return !l.set || n <= l.n }

// plus widens the bound by another; without either there is none. Bounds that
// no int64 can hold become the largest one.
func (l Limit) plus(o Limit) Limit {
	if !l.set || !o.set {
		return Limit{}
	}
	if l.n > math.MaxInt64-o.n {
		return Limit{n: math.MaxInt64, set: true}
	}
	return Limit{n: l.n + o.n, set: true}
}

// MarshalJSON writes the bound as a number, and no bound as null.
func (l Limit) MarshalJSON() ([]byte, error) {
	if !l.set {
		return []byte("null"), nil
	}
	return json.Marshal(l.n)
}

// UnmarshalJSON reads what MarshalJSON wrote; a negative number is refused.
func (l *Limit) UnmarshalJSON(b []byte) error {
	var n *int64
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("reading a limit: %w", err)
	}
	if n == nil {
		*l = Limit{}
		return nil
	}
	if *n < 0 {
		return fmt.Errorf("reading a limit: %d is negative", *n)
	}
	*l = AtMost(*n)
	return nil
}
