package audit

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/test/chaos/site"
)

// Doubled returns what is there twice: two bookings of one request, an extension
// that took place more often than it was asked for, a GPU in two pairs of hands.
// asked is how many extensions were asked of each allocation.
func (r Rows) Doubled(asked map[string]int) []string {
	doubled := slices.Clone(r.Overlaps)
	names := map[string]string{}
	note := func(kind, org, name, id string) {
		key := kind + " " + org + " " + name
		if other, twice := names[key]; twice && name != "" {
			doubled = append(doubled, fmt.Sprintf("the request %s made %s and %s", name, other, id))
		}
		names[key] = id
	}
	for id, v := range r.Reservations {
		note("reservation", v.OrganizationID, v.Name, id)
	}
	for id, a := range r.Allocations {
		if a.JobID == "" { // each attempt of a job has one of its job's name
			note("allocation", a.OrganizationID, a.Name, id)
		}
	}
	for id, n := range r.countExtensions() {
		if n > asked[id] {
			doubled = append(doubled, fmt.Sprintf("%d extensions of %s were asked for, and %d took place", asked[id],
				id, n))
		}
	}
	slices.Sort(doubled)
	return doubled
}

// Twins returns nodes that had two machines at one time. The bill says when each
// lived, so no moment is missed.
func Twins(bill []site.Machine) []string {
	byNode := map[string][]site.Machine{}
	for _, m := range bill {
		byNode[m.Node] = append(byNode[m.Node], m)
	}
	var twins []string
	for node, machines := range byNode {
		for i, one := range machines {
			for _, other := range machines[i+1:] {
				if one.From.Before(other.To) && other.From.Before(one.To) {
					twins = append(twins, fmt.Sprintf("node %s had %s and %s at one time", node, one.ID, other.ID))
				}
			}
		}
	}
	slices.Sort(twins)
	return twins
}
