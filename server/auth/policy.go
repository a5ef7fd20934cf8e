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
	Node   bool        // the key of a node's daemon may use it, for its own node
	Join   bool        // a join token may use it, for its own node
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
	Nodes    = Policy{Node: true}
	Joins    = Policy{Join: true}
)

// Allow reports nil when the actor may use a route with this policy, else a
// problem.
func (p Policy) Allow(a ledger.Actor) error {
	if !p.takes(a.Kind) {
		return problem.New(contract.CodePermissionDenied, "This kind of key may not use this route.").
			Fix("Use "+kindFor(p)+" key", "")
	}
	if p.Role != "" && !a.AtLeast(p.Role) {
		return problem.New(contract.CodePermissionDenied,
			fmt.Sprintf("It requires the role %s; this key has the role %s.", p.Role, a.Role)).
			Fix("Ask "+whoMay[p.Role]+" to do it, or for a key with the role "+string(p.Role), "")
	}
	return nil
}

// takes reports whether keys of a kind may use the route. A kind that nobody thought of
// may use nothing.
func (p Policy) takes(kind ledger.KeyKind) bool {
	switch kind {
	case ledger.PersonKey:
		return p.Person
	case ledger.AgentKey:
		return p.Agent
	case ledger.NodeKey:
		return p.Node
	case ledger.JoinToken:
		return p.Join
	}
	return false
}

// AllowNode is Allow for a route of a node's daemon: it may act for its own node alone.
func (p Policy) AllowNode(a ledger.Actor, nodeID string) error {
	if err := p.Allow(a); err != nil || !p.Node && !p.Join || a.NodeID == nodeID {
		return err
	}
	return problem.New(contract.CodePermissionDenied, "This key is of another node's daemon.").
		Fix("Use the key of this node, or have its daemon join: forewarm nodes join", "")
}

// whoMay are the people who have a role.
var whoMay = map[ledger.Role]string{ledger.Viewer: "an admin of your organization",
	ledger.Member: "a member or an admin of your organization",
	ledger.Admin:  "an admin of your organization", ledger.Operator: "an operator of the installation"}

func kindFor(p Policy) string {
	switch {
	case p.Person:
		return "a person's"
	case p.Node:
		return "a node's"
	case p.Join:
		return "a join token as its"
	}
	return "an agent's"
}
