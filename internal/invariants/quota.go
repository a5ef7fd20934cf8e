package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// gpuUseByOrganization recounts, by organization, how the GPUs that it holds and is promised
// change over time.
func gpuUseByOrganization(rows Rows) map[string][]step {
	steps := map[string][]step{}
	for _, p := range rows.Pools {
		for _, r := range p.Reservations {
			if r.Placed() {
				steps[r.OrganizationID] = append(steps[r.OrganizationID], stepsOver(r.Window, r.Shape.GPUs())...)
			}
		}
		for _, a := range p.Allocations {
			if a.Live() {
				steps[a.OrganizationID] = append(steps[a.OrganizationID], stepsOver(a.Window, a.Shape.GPUs())...)
			}
		}
	}
	return steps
}

// checkQuotas compares the recount of each organization with its limit, with what the
// ledger counts, and with what its cohort lends.
func checkQuotas(rows Rows) []Violation {
	var found []Violation
	steps, cohorts := gpuUseByOrganization(rows), map[string][]ledger.Organization{}
	for _, org := range rows.Organizations {
		of := steps[org.ID]
		most, at := peakOf(of)
		if limit, bounded := ceilingOf(org.Limits); bounded && int64(most) > limit {
			found = append(found, Violation{Quota, org.ID,
				fmt.Sprintf("may have %d GPUs and has %d at %s", limit, most, formatTime(at))})
		}
		if counted, ok := rows.Committed[org.ID]; ok {
			found = append(found, compareCount(org.ID, of, counted)...)
		}
		if c := org.Limits.Cohort; c != "" {
			cohorts[c] = append(cohorts[c], org)
		}
	}
	for name, members := range cohorts {
		found = append(found, checkLending(name, members, steps)...)
	}
	return found
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ceilingOf is the most GPUs that an organization may have whatever others leave.
func ceilingOf(l quota.Limits) (most int64, bounded bool) {
	if l.Cohort == "" {
		return int64(l.GPUs), true
	}
	borrowed, bounded := l.Borrowing[quota.GPUs].Bound()
	return int64(l.GPUs) + borrowed, bounded
}

// checkLending checks the rule of quota.Shared at every instant: what the members use
// beyond what they keep for themselves is within what they lend.
func checkLending(cohort string, members []ledger.Organization, steps map[string][]step) []Violation {
	var (
		lent, beyond int64
		all          []memberStep
	)
	kept, use := make([]int64, len(members)), make([]int64, len(members))
	for i, m := range members {
		n := int64(m.Limits.GPUs)
		if l, limited := m.Limits.Lending[quota.GPUs].Bound(); limited {
			n = min(n, l)
		}
		lent += n
		kept[i] = int64(m.Limits.GPUs) - n
		for _, s := range steps[m.ID] {
			all = append(all, memberStep{s, i})
		}
	}
	slices.SortStableFunc(all, func(a, b memberStep) int { return a.at.Compare(b.at) })
	for i, s := range all {
		beyond -= max(0, use[s.member]-kept[s.member])
		use[s.member] += int64(s.by)
		beyond += max(0, use[s.member]-kept[s.member])
		last := i+1 == len(all) || !all[i+1].at.Equal(s.at)
		if last && beyond > lent {
			return []Violation{{Quota, "cohort " + cohort,
				fmt.Sprintf("lends %d GPUs and its members take %d at %s", lent, beyond, formatTime(s.at))}}
		}
	}
	return nil
}

// memberStep is a step of one member of a cohort.
type memberStep struct {
	step
	member int
}
