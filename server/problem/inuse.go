package problem

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// waysToEnd says what ends each kind of thing that keeps another from being
// deleted.
var waysToEnd = map[string]string{
	"nodes":        "Lower min_nodes to 0 and drain its nodes, or wait until they are gone",
	"reservations": "Cancel its reservations, or wait until they are over",
	"allocations":  "Release its allocations, or wait until they are over",
	"schedules":    "Delete its schedules",
	"holders": "Name another organization in these pools, so that it is known whose the work there is: forewarm pools " +
		"edit POOL --holder …, --default-organization ORG",
}

// fromInUse names everything that has to end first.
func fromInUse(e *ledger.InUseError) *Problem {
	p := New(contract.CodeInUse, e.Error()+".")
	for _, use := range e.In {
		named := strings.Join(use.IDs, ", ")
		if more := use.Count - len(use.IDs); more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		p.Blockers = append(p.Blockers, contract.Blocker{Code: "live_" + use.Noun, Unit: use.Noun,
			Asked:   int64(use.Count),
			Message: use.Text() + ": " + named})
		p = p.Fix(waysToEnd[use.Noun], "")
	}
	return p
}
