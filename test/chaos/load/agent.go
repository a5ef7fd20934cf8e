package load

import (
	"context"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// agent replaces its plan of a pool every few seconds.
type agent struct {
	*caller
	tide  tide
	name  string
	pools []string // their ids
	count int
}

func (a *agent) runAgent(ctx context.Context) {
	for a.tide.awaitFlood(ctx) {
		a.count++
		plan := contract.AgentPlan{PoolID: a.pools[a.count%len(a.pools)], Windows: []contract.AgentWindow{}}
		for range a.chance.IntN(4) {
			plan.Windows = append(plan.Windows, a.drawWindow())
		}
		a.declareDemand(ctx, plan)
		waitFor(ctx, 2*time.Second+time.Duration(a.chance.Int64N(int64(4*time.Second))))
	}
}

func (a *agent) drawWindow() contract.AgentWindow {
	start := time.Now().UTC().Truncate(time.Second).Add(time.Duration(5+a.chance.IntN(60)) * time.Second)
	return contract.AgentWindow{
		Start: start, End: start.Add(time.Duration(5+a.chance.IntN(25)) * time.Second), GPUs: 1 + a.chance.IntN(2),
		Probability: 0.3 + 0.6*a.chance.Float64(), ReasonCode: contract.ReasonRecentRate,
	}
}

func (a *agent) declareDemand(ctx context.Context, plan contract.AgentPlan) {
	outcome, ok := askUntilAnswered(ctx, a.caller, request[contract.PlanOutcome]{Plan,
		fmt.Sprintf("%s-%d", a.name, a.count),
		func(ctx context.Context, c *client.Client) (contract.PlanOutcome, error) {
			return c.SetDemand(ctx, plan)
		},
		noIDs})
	if !ok {
		return
	}
	for _, w := range outcome.Windows {
		for _, id := range w.ReservationIDs {
			a.journal.recordEffect(Entry{Op: Plan, Organization: a.org, ID: id})
		}
	}
}

// noIDs has nothing in common between two answers: a plan is the whole of what
// is wished, so each of them tells what there is then, and what found a place
// meanwhile.
func noIDs(contract.PlanOutcome) string { return "" }
