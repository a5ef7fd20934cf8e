// Package cost divides the cost of machines among those who caused it: every
// moment of every GPU is charged once, to a tenant, to the warm pool, or to an
// orphan, and the parts of a machine's price add up to it to the micro-dollar.
// It is pure: what was billed and who held what come in, charges come out.
package cost

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// Payer is who a charge is for.
type Payer string

// The payers.
const (
	Tenant   Payer = "tenant"    // who held the GPUs
	WarmPool Payer = "warm_pool" // nobody held them: the price of being ready
	Orphan   Payer = "orphan"    // a machine that no node stood for
)

// Cause says why the warm pool pays.
type Cause string

// The causes of what nobody held.
const (
	Boot       Cause = "boot"         // from a machine's birth until it was proved usable, or until now
	FailedBoot Cause = "failed_boot"  // the whole life of one that never was, and is not on its way to be
	EarlyWarm  Cause = "early_warm"   // ready and not held yet, and later it was
	LateGoing  Cause = "late_release" // ready and not held any more, until its removal began
	Unused     Cause = "unused"       // a ready GPU that nobody ever held
	NoShow     Cause = "no_show"      // ready for a reservation that nobody came for
	Quarantine Cause = "quarantined"  // kept out of use, and not held
	Removal    Cause = "removal"      // from the start of its removal to its end
	MinBilling Cause = "min_billing"  // what the shortest billed time adds to a life that was shorter
)

// Instance is one machine's life as it is charged.
type Instance struct {
	Price capacity.Offering
	GPUs  int
	// Billed is from birth to the end of the bill, or to now while it stands.
	Billed calendar.Interval
	// Ready is when it was proved usable, Retired when its removal began; zero
	// where that never came.
	Ready, Retired time.Time
	Holds          []Hold
	// Missed are the windows in which it stood ready for somebody who never came.
	Missed []calendar.Interval
	// Quarantined are the times in which it was kept out of use. The End of one
	// that goes on is zero.
	Quarantined []calendar.Interval
	Orphan      bool
	// Booting is set while it is on its way to be ready: nothing has failed.
	Booting bool
	// Activity are the stretches of its GPUs, as far as somebody looked at them.
	Activity []activity.Stretch
}

// Hold is the time for which one of the machine's GPUs was somebody's.
type Hold struct {
	GPU            string // its UUID
	OrganizationID string
	Held           calendar.Interval
}

// Charge is one part of a machine's cost.
type Charge struct {
	Payer          Payer
	OrganizationID string        // of a tenant
	Cause          Cause         // of the warm pool
	GPUTime        time.Duration // of all its GPUs together
	Amount         money.MicroUSD
	// Idle and Unobserved are the parts of what a tenant held in which GPUs were seen to do
	// nothing, and in which nobody looked. The rest was used.
	Idle, Unobserved Part
}

type account struct {
	payer        Payer
	organization string
	cause        Cause
}

// Divide returns what the machine cost within the period, by payer. The charges
// of adjoining periods add up to those of the whole, and those of a machine's
// life to Price.Cost of it. Time is charged at the price; what the provider's
// minimum adds is a charge of its own, without time, in the period of the birth.
func Divide(m Instance, period calendar.Interval) []Charge {
	spent := map[account]time.Duration{}
	life := m.Billed.From(period.Start)
	life.End = calendar.Earlier(life.End, period.End)
	for _, holds := range m.timelines() {
		m.spendHolds(spent, life, holds)
	}
	charges := apportion(spent, m.costUntil(period.End)-m.costUntil(period.Start))
	m.divideByActivity(charges, life)
	if added := m.minimumCharge(); added > 0 && period.Contains(m.Billed.Start) {
		charges = m.chargeMinimum(charges, added)
	}
	return charges
}

// chargeMinimum charges what the provider's minimum adds. An orphan has one charge.
func (m Instance) chargeMinimum(charges []Charge, added money.MicroUSD) []Charge {
	a := m.accountOf(MinBilling)
	for i := range charges {
		if charges[i].Payer == a.payer && charges[i].Cause == a.cause {
			charges[i].Amount += added
			return charges
		}
	}
	return append(charges, Charge{Payer: a.payer, Cause: a.cause, Amount: added})
}

// costUntil is what its time has cost before t.
func (m Instance) costUntil(t time.Time) money.MicroUSD {
	return m.Price.Price.For(max(0, calendar.Earlier(t, m.Billed.End).Sub(m.Billed.Start)))
}

// minimumCharge is what the provider's shortest billed time adds to its life.
func (m Instance) minimumCharge() money.MicroUSD {
	life := m.Billed.Length()
	return m.Price.Cost(life) - m.Price.Price.For(life)
}

// timelines are the holds of each GPU in their order; a GPU that nobody ever
// held has an empty one.
func (m Instance) timelines() [][]Hold {
	byGPU := map[string][]Hold{}
	for _, h := range m.Holds {
		byGPU[h.GPU] = append(byGPU[h.GPU], h)
	}
	lines := make([][]Hold, 0, m.GPUs)
	for _, holds := range byGPU {
		slices.SortFunc(holds, func(a, b Hold) int { return a.Held.Start.Compare(b.Held.Start) })
		lines = append(lines, holds)
	}
	for len(lines) < m.GPUs {
		lines = append(lines, nil)
	}
	return lines
}

// spendHolds divides one GPU's part of life among its holders and the gaps between
// them.
func (m Instance) spendHolds(spent map[account]time.Duration, life calendar.Interval, holds []Hold) {
	at := life.Start
	for _, h := range cutHolds(holds, life) {
		m.spendGap(spent, calendar.Interval{Start: at, End: h.Held.Start}, EarlyWarm)
		if m.Orphan {
			spent[account{payer: Orphan}] += h.Held.Length()
		} else {
			spent[account{payer: Tenant, organization: h.OrganizationID}] += h.Held.Length()
		}
		at = h.Held.End
	}
	last := LateGoing
	if after := slices.ContainsFunc(holds, func(h Hold) bool { return !h.Held.Start.Before(life.End) }); after {
		last = EarlyWarm
	} else if len(holds) == 0 {
		last = Unused
	}
	m.spendGap(spent, calendar.Interval{Start: at, End: life.End}, last)
}

// cutHolds are the parts of one GPU's holds that lie in a life, each from the end of the one
// before at the earliest.
func cutHolds(holds []Hold, life calendar.Interval) []Hold {
	cut, at := make([]Hold, 0, len(holds)), life.Start
	for _, h := range holds {
		h.Held = calendar.Interval{Start: calendar.Later(h.Held.Start, at), End: calendar.Earlier(h.Held.End, life.End)}
		if h.Held.Valid() {
			cut, at = append(cut, h), h.Held.End
		}
	}
	return cut
}

// spendGap divides a time in which nobody held a GPU by the phases of the machine's
// life; idle is the cause of what was ready.
func (m Instance) spendGap(spent map[account]time.Duration, gap calendar.Interval, idle Cause) {
	add := func(start, end time.Time, cause Cause) {
		if start, end = calendar.Later(start, gap.Start), calendar.Earlier(end, gap.End); start.Before(end) {
			spent[m.accountOf(cause)] += end.Sub(start)
		}
	}
	if m.Ready.IsZero() {
		add(gap.Start, gap.End, m.waitingCause())
		return
	}
	retired := m.Retired
	if retired.IsZero() {
		retired = calendar.Later(gap.End, m.Ready)
	}
	add(gap.Start, m.Ready, Boot)
	at := m.Ready
	for _, part := range m.splitByUse(retired) {
		start, end := calendar.Later(part.Start, at), calendar.Earlier(part.End, retired)
		if start.Before(end) {
			add(at, start, idle)
			add(start, end, part.cause)
			at = end
		}
	}
	add(at, retired, idle)
	add(retired, gap.End, Removal)
}

// part is a time with a cause of its own.
type part struct {
	calendar.Interval
	cause Cause
}

// splitByUse are the parts of the machine's ready time that were not merely idle, by
// start. Where two overlap, the first goes on.
func (m Instance) splitByUse(until time.Time) []part {
	parts := make([]part, 0, len(m.Missed)+len(m.Quarantined))
	for _, missed := range m.Missed {
		parts = append(parts, part{missed, NoShow})
	}
	for _, kept := range m.Quarantined {
		if kept.End.IsZero() {
			kept.End = until
		}
		parts = append(parts, part{kept, Quarantine})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.Start.Compare(b.Start) })
	return parts
}

func (m Instance) waitingCause() Cause {
	switch {
	case !m.Ready.IsZero():
		return Removal
	case m.Booting:
		return Boot
	default:
		return FailedBoot
	}
}

func (m Instance) accountOf(cause Cause) account {
	if m.Orphan {
		return account{payer: Orphan}
	}
	return account{payer: WarmPool, cause: cause}
}

// apportion divides the total by time. Each part is rounded down, and what is left
// over goes, micro-dollar by micro-dollar, to the largest remainders (Hamilton's
// method of apportionment), so that the parts add up.
func apportion(spent map[account]time.Duration, total money.MicroUSD) []Charge {
	type portion struct {
		Charge
		left uint64
	}
	var all time.Duration
	for _, d := range spent {
		all += d
	}
	parts, rest := make([]portion, 0, len(spent)), total
	for a, d := range spent {
		p := portion{Charge: Charge{Payer: a.payer, OrganizationID: a.organization, Cause: a.cause, GPUTime: d}}
		if all > 0 && total > 0 {
			hi, lo := bits.Mul64(uint64(total), uint64(d))
			quotient, left := bits.Div64(hi, lo, uint64(all))
			p.Amount, p.left = money.MicroUSD(quotient), left
		}
		rest -= p.Amount
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b portion) int {
		return cmp.Or(cmp.Compare(b.left, a.left), cmp.Compare(a.Payer, b.Payer),
			cmp.Compare(a.OrganizationID, b.OrganizationID), cmp.Compare(a.Cause, b.Cause))
	})
	charges := make([]Charge, len(parts))
	for i := range parts {
		if each := rest / money.MicroUSD(len(parts)-i); each > 0 || rest > 0 {
			each = max(each, 1)
			parts[i].Amount += each
			rest -= each
		}
		charges[i] = parts[i].Charge
	}
	return charges
}
