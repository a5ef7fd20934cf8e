package auth

import (
	"fmt"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

// Policy is what a route demands.
type Policy struct {
	Public bool        // no key is looked at
	Role   ledger.Role // the least role
	Person bool        // people's keys may use it
	Agent  bool        // agents' keys may use it
}

// The policies of routes. Rights inside an organization are the ledger's business:
// these are the outer check.
var (
	Public   = Policy{Public: true}
	Viewer   = Policy{Role: ledger.Viewer, Person: true}
	Member   = Policy{Role: ledger.Member, Person: true}
	Admin    = Policy{Role: ledger.Admin, Person: true}
	Operator = Policy{Role: ledger.Operator, Person: true}
	AnyKey   = Policy{Role: ledger.Viewer, Person: true, Agent: true}
	AgentOwn = Policy{Role: ledger.Member, Person: true, Agent: true} // an agent sees only what it made
	Agents   = Policy{Role: ledger.Member, Agent: true}
)

// Allow reports nil when the actor may use a route with this policy, else a
// problem.
func (p Policy) Allow(a ledger.Actor) error {
	kind := p.Person
	if a.Kind == ledger.AgentKey {
		kind = p.Agent
	}
	if !kind {
		return problem.New(contract.CodePermissionDenied, "This kind of key may not use this route.").
			Fix("Use "+kindFor(p)+" key", "")
	}
	if !a.AtLeast(p.Role) {
		return problem.New(contract.CodePermissionDenied,
			fmt.Sprintf("It requires the role %s; this key has the role %s.", p.Role, a.Role)).
			Fix("Ask "+whoMay[p.Role]+" to do it, or for a key with the role "+string(p.Role), "")
	}
	return nil
}

// whoMay are the people who have a role.
var whoMay = map[ledger.Role]string{ledger.Viewer: "an admin of your organization",
	ledger.Member: "a member or an admin of your organization",
	ledger.Admin:  "an admin of your organization", ledger.Operator: "an operator of the installation"}

func kindFor(p Policy) string {
	if p.Person {
		return "a person's"
	}
	return "an agent's"
}
