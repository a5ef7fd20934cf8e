package audit

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/test/chaos/load"
)

// Lost returns what was acknowledged and is not there, or had no effect.
func (r Rows) Lost(entries []load.Entry) []string {
	extended := r.countExtensions()
	told := map[string]int{}
	var lost []string
	for _, e := range entries {
		if e.Op == load.Extend {
			told[e.ID]++
			continue
		}
		if what := r.contradictionOf(e); what != "" {
			lost = append(lost, fmt.Sprintf("%s of %s, acknowledged at %s, %s", e.Op, e.ID, e.At.Format(stamp), what))
		}
	}
	for id, n := range told {
		if extended[id] < n {
			lost = append(lost, fmt.Sprintf("%d extensions of %s were acknowledged, and %d took place", n, id,
				extended[id]))
		}
	}
	slices.Sort(lost)
	return lost
}

const stamp = "15:04:05.000"

// contradictionOf says what speaks against an entry, nothing when it is true.
func (r Rows) contradictionOf(e load.Entry) string {
	switch e.Op {
	case load.Submit, load.CancelJob, load.RequeueJob: // what became of jobs, people are asked
		return ""
	case load.Reserve, load.Batch, load.Plan, load.Cancel:
		v, there := r.Reservations[e.ID]
		switch {
		case !there:
			return "is not there"
		case v.OrganizationID != e.Organization || e.Name != "" && v.Name != e.Name:
			return fmt.Sprintf("is %q of %s", v.Name, v.OrganizationID)
		case e.Op == load.Cancel && v.State() != reservation.Cancelled:
			return "is " + string(v.State())
		}
		return ""
	default:
		return r.contradictAllocated(e)
	}
}

func (r Rows) contradictAllocated(e load.Entry) string {
	a, there := r.Allocations[e.ID]
	if !there {
		return "is not there"
	}
	if a.OrganizationID != e.Organization || e.Name != "" && a.Name != e.Name {
		return fmt.Sprintf("is %q of %s", a.Name, a.OrganizationID)
	}
	if e.Op == load.Release && a.State() != allocation.Released && a.State() != allocation.Cancelled {
		return "is " + string(a.State())
	}
	if e.Op == load.Claim && (!slices.Contains(a.Reservations, e.Reservation) ||
		r.Reservations[e.Reservation].State() != reservation.Claimed) {
		return "did not claim " + e.Reservation
	}
	if held := deviceIDs(a); len(e.Devices) > 0 && !slices.Equal(held, e.Devices) {
		return fmt.Sprintf("was told of GPUs %v and held %v", e.Devices, held)
	}
	return ""
}

func deviceIDs(a allocation.Allocation) []string {
	var all []string
	for _, d := range a.Devices {
		all = append(all, d.UUID)
	}
	slices.Sort(all)
	return all
}

// countExtensions counts those that the journal of the ledger tells of, by allocation.
func (r Rows) countExtensions() map[string]int {
	n := map[string]int{}
	for _, e := range r.Events {
		if e.Type == "allocation.extended" {
			n[e.Subject]++
		}
	}
	return n
}

// TakenAway returns allocations that ended because a node was lost although the
// cloud did not take its machine: whoever lost it, it was not the provider.
func (r Rows) TakenAway(tookByCloud func(machine string) bool) []string {
	machine := map[string]string{}
	for _, n := range r.Nodes {
		machine[n.ID] = n.ProviderID
	}
	var lost []string
	for _, a := range r.OverAllocations {
		if a.State() != allocation.Failed {
			continue
		}
		byCloud := false
		for _, d := range a.Devices {
			byCloud = byCloud || tookByCloud(machine[d.NodeID])
		}
		if !byCloud {
			lost = append(lost, fmt.Sprintf("%s failed (%s), and the cloud had taken none of its machines", a.ID,
				a.Reason))
		}
	}
	slices.Sort(lost)
	return lost
}
