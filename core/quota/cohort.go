package quota

import (
	"math"
	"time"
)

// Shared is what a cohort lends each other, resource by resource.
//
// The rule is that of Kueue's cohorts (kueue.sigs.k8s.io, ClusterQueue:
// nominalQuota, borrowingLimit, lendingLimit). With nominal N, lending limit L
// (none: N) and use U of each member j, a member keeps G = N − min(L, N) for
// itself, and the cohort shares the rest. At every instant:
//
//	Uᵢ ≤ Nᵢ + borrowing limit of i
//	Σⱼ max(0, Uⱼ − Gⱼ) ≤ Σⱼ min(Lⱼ, Nⱼ)
//
// The second must hold only for a request that adds to its left side: what a
// member keeps is its own, however much the others have borrowed. Here use is
// what is held and promised, so a lender finds what it lent free again only when
// the borrower's promise is over; nothing promised is taken back.
type Shared struct {
	Lendable Bounds // the right side
	// Use is the left side with the ask, at the worst instant at which the ask adds
	// to it, else 0. Where the sum of every member's own peak is within Lendable it
	// is that sum, which is never less.
	Use Vector
}

// splitLending returns what a member with these limits does not lend, and what it lends.
func (l *Limits) splitLending(r Resource) (kept int64, lent Limit) {
	lent = l.Lending[r]
	n, bounded := l.nominalOf(r).Bound()
	if !bounded {
		return math.MaxInt64, lent
	}
	most, limited := lent.Bound()
	if !limited || most > n {
		most = n
	}
	return n - most, AtMost(most)
}

// shareUsed is the part of a use that a member takes from what is shared.
func (l *Limits) shareUsed(r Resource, use int64) int64 {
	kept, _ := l.splitLending(r)
	return max(0, use-kept)
}

func measureShared(h *Holdings, a *Ask, own Vector) Shared {
	var s Shared
	for r := range resources {
		_, s.Lendable[r] = h.Limits.splitLending(r)
		for i := range h.Cohort {
			_, lent := h.Cohort[i].Limits.splitLending(r)
			s.Lendable[r] = s.Lendable[r].plus(lent)
		}
	}
	s.Use = sharedPeaks(h, a, own)
	for r := range resources {
		if !s.Lendable[r].Allows(s.Use[r]) {
			s.Use[r], _ = sharedAt(h, a, r)
		}
	}
	return s
}

// sharedPeaks is an upper bound of the shared use that needs no look at single
// instants: everybody's own peak at once.
func sharedPeaks(h *Holdings, a *Ask, own Vector) Vector {
	var use Vector
	for r := range resources {
		if a.Demand[r] > 0 {
			use[r] = h.Limits.shareUsed(r, own[r]+a.Demand[r])
		}
	}
	if use == (Vector{}) {
		return use
	}
	for i := range h.Cohort {
		m := &h.Cohort[i]
		theirs := peakUse(m.Committed, a.Window)
		for r := range resources {
			if use[r] > 0 {
				use[r] += m.Limits.shareUsed(r, theirs[r])
			}
		}
	}
	return use
}

// sharedAt finds the worst instant by looking at each at which a member's use
// changes, and the first of those that are as bad.
func sharedAt(h *Holdings, a *Ask, r Resource) (worst int64, at time.Time) {
	for t, more := a.Window.Start, a.Window.Valid(); more; {
		use := h.Limits.shareUsed(r, atTime(h.Committed, t)[r]+a.Demand[r])
		if use > 0 {
			for i := range h.Cohort {
				m := &h.Cohort[i]
				use += m.Limits.shareUsed(r, atTime(m.Committed, t)[r])
			}
		}
		if use > worst {
			worst, at = use, t
		}
		t, more = nextChange(h, t)
		more = more && t.Before(a.Window.End)
	}
	return worst, at
}

func atTime(c *Commitments, t time.Time) Vector {
	if c == nil {
		return Vector{}
	}
	return c.At(t)
}

// nextChange is the first instant after t at which any member's use changes.
func nextChange(h *Holdings, t time.Time) (time.Time, bool) {
	first, found := changeAfter(h.Committed, t)
	for i := range h.Cohort {
		m := &h.Cohort[i]
		if next, ok := changeAfter(m.Committed, t); ok && (!found || next.Before(first)) {
			first, found = next, true
		}
	}
	return first, found
}

func changeAfter(c *Commitments, t time.Time) (time.Time, bool) {
	if c == nil {
		return time.Time{}, false
	}
	return c.Next(t)
}
