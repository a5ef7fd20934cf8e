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

var (
	public   = Policy{Public: true}
	viewer   = Policy{Role: ledger.Viewer, Person: true}
	member   = Policy{Role: ledger.Member, Person: true}
	admin    = Policy{Role: ledger.Admin, Person: true}
	operator = Policy{Role: ledger.Operator, Person: true}
	anyKey   = Policy{Role: ledger.Viewer, Person: true, Agent: true}
	agentOwn = Policy{Role: ledger.Member, Person: true, Agent: true} // an agent sees only what it made
	agents   = Policy{Role: ledger.Member, Agent: true}
)

// Policies has a row for every route, by method and pattern. A route without a
// row answers nobody. Rights inside an organization are the ledger's business:
// this is the outer check.
var Policies = map[string]Policy{
	"GET /healthz":      public,
	"GET /readyz":       public,
	"GET /openapi.json": public,
	"GET /openapi.yaml": public,
	"GET /docs":         public,
	"GET /":             public, // has a sign-in of its own
	"GET /login":        public,
	"POST /login":       public,
	"POST /logout":      public,
	"GET /assets/:file": public,
	"GET /metrics":      operator,

	"GET /v1/whoami":  anyKey,
	"GET /v1/version": anyKey,

	"POST /v1/organizations":          operator,
	"GET /v1/organizations":           viewer,
	"GET /v1/organizations/:id":       viewer,
	"GET /v1/organizations/:id/quota": viewer,
	"PUT /v1/organizations/:id/quota": operator,
	"GET /v1/organizations/:id/usage": viewer,
	"PUT /v1/users/:id/caps":          admin,
	"POST /v1/users":                  admin,
	"GET /v1/users":                   admin,
	"GET /v1/users/:id":               admin,
	"PATCH /v1/users/:id":             admin,
	"DELETE /v1/users/:id":            admin,
	"DELETE /v1/organizations/:id":    operator,
	"POST /v1/keys":                   admin,
	"GET /v1/keys":                    admin,
	"DELETE /v1/keys/:id":             admin,
	"POST /v1/keys/:id/adopt":         operator,

	"POST /v1/pools":                operator,
	"GET /v1/pools":                 anyKey,
	"GET /v1/pools/:id":             anyKey,
	"PATCH /v1/pools/:id":           operator,
	"DELETE /v1/pools/:id":          operator,
	"GET /v1/nodes":                 viewer,
	"GET /v1/nodes/:id":             viewer,
	"POST /v1/nodes/:id/drain":      operator,
	"POST /v1/nodes/:id/resume":     operator,
	"POST /v1/nodes/:id/quarantine": operator,
	"GET /v1/gpus":                  viewer,
	"GET /v1/gpus/:uuid":            viewer,

	"GET /v1/pools/:id/calendar": viewer,
	"GET /v1/pools/:id/shares":   viewer,
	"POST /v1/advice/calendar":   member,
	"GET /v1/prewarm":            anyKey,
	"POST /v1/prewarm/pause":     admin,
	"POST /v1/prewarm/resume":    admin,

	"POST /v1/allocations":             member,
	"GET /v1/allocations":              viewer,
	"GET /v1/allocations/:id":          viewer,
	"DELETE /v1/allocations/:id":       member,
	"POST /v1/allocations/:id/release": member,
	"POST /v1/allocations/:id/extend":  member,

	"POST /v1/reservations":           member,
	"POST /v1/reservations/batch":     member,
	"GET /v1/reservations":            anyKey, // an agent sees its own
	"GET /v1/reservations/:id":        anyKey, // an agent sees its own
	"DELETE /v1/reservations/:id":     agentOwn,
	"POST /v1/reservations/:id/claim": member,
	"PUT /v1/agent/plan":              agents,

	"POST /v1/forecasts":          agentOwn,
	"POST /v1/forecasts/outcomes": agentOwn,
	"GET /v1/forecasts":           anyKey, // an agent sees its own
	"GET /v1/forecasts/:id":       anyKey, // an agent sees its own
	"GET /v1/reports/calibration": viewer,
	"GET /v1/audit/verify":        operator,
	"GET /v1/recovery":            operator,
	"POST /v1/recovery/begin":     operator,
	"POST /v1/recovery/confirm":   operator,
	"POST /v1/recovery/journal":   operator,
	"GET /v1/reports/costs":       viewer,

	"POST /v1/schedules":                member,
	"GET /v1/schedules":                 viewer,
	"GET /v1/schedules/:id":             viewer,
	"DELETE /v1/schedules/:id":          member,
	"GET /v1/schedules/:id/occurrences": viewer,
	"POST /v1/schedules/:id/pause":      member,
	"POST /v1/schedules/:id/resume":     member,

	"GET /v1/decisions":                anyKey, // an agent sees its own
	"GET /v1/decisions/:id":            anyKey, // an agent sees its own
	"GET /v1/reservations/:id/explain": anyKey, // an agent sees its own
	"GET /v1/allocations/:id/explain":  viewer,
	"GET /v1/nodes/:id/explain":        viewer,
	"GET /v1/schedules/:id/explain":    viewer,
	"POST /v1/explain":                 member,

	"POST /v1/plans":           anyKey, // and the policy of the verb that is planned
	"GET /v1/plans/:id":        anyKey, // an agent sees its own
	"POST /v1/plans/:id/apply": anyKey, // and the policy of the verb that is planned

	"GET /v1/events":          viewer,
	"GET /v1/events/stream":   viewer,
	"GET /v1/reports/summary": viewer,
}

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
			fmt.Sprintf("It takes the role %s, and this key has the role %s.", p.Role, a.Role)).
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
