package problem

import (
	"fmt"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// shownAtRisk is how many of the promises at risk a problem names.
const shownAtRisk = 20

func fromRisk(e *ledger.PromisesAtRiskError) *Problem {
	detail, choose := fmt.Sprintf("Promises would exceed these limits in %s",
		phrase.Count(len(e.Promises), "case")), "limits that keep them"
	if e.Pool != "" {
		detail, choose = fmt.Sprintf("Pool %s would no longer have room for %d of its promises", e.Pool,
			len(e.Promises)), "a size that keeps them"
	}
	if more := len(e.Promises) - shownAtRisk; more > 0 {
		detail += fmt.Sprintf("; the first %d are listed, and %d more are not", shownAtRisk, more)
	}
	p := New(contract.CodePromisesAtRisk, detail+".").
		Fix("Choose "+choose+", or wait until they are over", "").
		Repeat("force", true, "Or do it anyway: they are kept, marked degraded, and recorded in the journal")
	p.AtRisk = AtRisk(e.Promises[:min(len(e.Promises), shownAtRisk)])
	return p
}

// AtRisk encodes promises that limits do not allow, or a pool has no place for.
func AtRisk(promises []ledger.AtRisk) []contract.PromiseAtRisk {
	out := make([]contract.PromiseAtRisk, len(promises))
	for i, r := range promises {
		out[i] = contract.PromiseAtRisk{ID: r.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID,
			GPUs:  r.Shape.GPUs(),
			Start: r.Window.Start.UTC(), End: r.Window.End.UTC(),
			Blockers: Reasons(append(admission.LimitReasons(r.Violations), r.Lost...))}
	}
	return out
}

func fromShare(e *ledger.ShareTakenError) *Problem {
	p := New(contract.CodePromisesAtRisk, e.Error())
	if e.Closest > 0 {
		p = p.Repeat("online_share", e.Closest,
			fmt.Sprintf("Choose an online share of %d thousandths, the closest that has room for everything booked",
				e.Closest))
	}
	p = p.Repeat("borrow_idle", true, "Or let a workload use what the other leaves free").
		Repeat("force", true, "Or do it anyway: what is booked stays, and nothing is added beyond the share")
	p.Blockers = Reasons(e.Reasons())
	return p
}
