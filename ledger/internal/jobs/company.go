package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// noteCompany notes whom a job names. By any other name nobody is looked for.
func (t terms) noteCompany(j job.Job) {
	for _, name := range slices.Concat(j.Where.Apart, j.Where.Near) {
		t.named[companyWord(j, name)] = true
	}
}

// companyWord is a name of a job of the same organization.
func companyWord(j job.Job, name string) string {
	return j.OrganizationID + " " + strings.ReplaceAll(name, "\n", " ")
}

// companyOf is with whom a job may be, and wants to be. The names count that somebody uses: jobs that differ in others
// are alike to the scheduler.
func (t terms) companyOf(j job.Job) placement.Company {
	if len(t.named) == 0 {
		return placement.Company{Tenant: t.tenantOf(j.OrganizationID)}
	}
	var own []string
	for _, name := range []string{j.ID, j.Array.ID, j.Name} {
		if word := companyWord(j, name); name != "" && t.named[word] {
			own = append(own, word)
		}
	}
	words := func(names []string) placement.Set {
		all := make([]string, 0, len(names))
		for _, name := range names {
			all = append(all, companyWord(j, name))
		}
		return placement.NewSet(all...)
	}
	return placement.Company{Names: placement.NewSet(own...), Apart: words(j.Where.Apart), Beside: words(j.Where.Near),
		Tenant: t.tenantOf(j.OrganizationID)}
}

// tenantOf is an organization where it matters to the scheduler; else all are one.
func (t terms) tenantOf(organizationID string) string {
	if !t.divides {
		return ""
	}
	return organizationID
}

// checkCompany refuses ids of jobs and arrays that are not there, or are others'. Of a name nobody knows whether there
// will be such a job.
func checkCompany(tx *txn.Tx, w job.Where) error {
	for _, list := range []struct {
		field     string
		all       []string
		mayBeName bool
	}{{"near", w.Near, false}, {"apart_from", w.Apart, true}} {
		for i, id := range list.all {
			if list.mayBeName && ids.Check(ids.Job, id) != nil && !isArray(id) {
				continue
			}
			own, err := isOwn(tx, id)
			if err != nil {
				return err
			}
			if !own {
				return &ledger.InvalidError{Field: fmt.Sprintf("%s[%d]", list.field, i),
					Rule: "must be the id of a job or an array of yours", Fix: "see: forewarm jobs list"}
			}
		}
	}
	return nil
}

// blockedByCompany says of a job that waits for GPUs that it shares no node with jobs that have some.
func blockedByCompany(r ledger.Reader, p ledger.PoolState, e *ledger.Explanation, j job.Job) error {
	b := ledger.Blocker{Code: "apart", Message: "It shares no node with jobs that have GPUs now, by --apart-from.",
		Fix: "wait for them, or submit it without --apart-from"}
	there := slices.DeleteFunc(slices.Clone(p.Allocations), func(a allocation.Allocation) bool {
		return !a.Live() || a.JobID == "" || a.OrganizationID != j.OrganizationID || len(j.Where.Apart)+len(a.Apart) == 0
	})
	whole := map[string]job.Job{} // of those whose arrays may be meant
	if booking.NamesArray(j.Where.Apart) {
		ids := make([]string, len(there))
		for i, a := range there {
			ids[i] = a.JobID
		}
		var err error
		if whole, err = r.JobsByID(ids); err != nil {
			return fmt.Errorf("reading the jobs that have GPUs: %w", err)
		}
	}
	for _, a := range there {
		other := booking.StandIn(a)
		if other.Array = whole[a.JobID].Array; j.StaysApart(other) {
			b.Evidence = append(b.Evidence, a.JobID+" ("+a.Name+") is on "+strings.Join(nodesOn(p, a.Slots), ", "))
		}
	}
	if len(b.Evidence) > 0 {
		e.Blockers = append(e.Blockers, b)
	}
	return nil
}

// nodesOn are the ids of the nodes on some slots of a pool.
func nodesOn(p ledger.PoolState, slots []int) (all []string) {
	for _, n := range p.Nodes {
		if slices.Contains(slots, n.Slot) && !node.Machine.Terminal(n.State()) {
			all = append(all, n.ID)
		}
	}
	return all
}
