package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
)

// ExplainNode explains a node that the actor sees. What will use it is told to operators only: the
// plans of others are theirs.
func (l Reporting) ExplainNode(ctx context.Context, actor ledger.Actor, id string) (ledger.Explanation, error) {
	var e *explained
	err := l.Store.Read(ctx, func(rd ledger.Reader) error {
		n, err := l.Sight(actor.Scope()).Node(rd, id)
		if err != nil {
			return err
		}
		if e, err = beginExplanation(l.Engine, rd, actor, id, n.PoolID); err != nil {
			return err
		}
		e.explainNode(n)
		if err := e.explainSilence(rd, actor, n); err != nil {
			return err
		}
		if err := e.explainCleaning(rd, n); err != nil {
			return err
		}
		return e.explainDraining(rd, n)
	})
	if err != nil {
		return ledger.Explanation{}, err
	}
	return e.finishExplanation(), nil
}

// takenBy says why no promise can have a node that is ready.
var takenBy = map[string]string{
	node.TakenByWork: ", with work of the cluster on it: no promise can have it",
	node.TakenAway:   ", and the cluster gives it no work: no promise can have it",
}

func (e *explained) explainNode(n node.Node) {
	e.Kind, e.State, e.Reason, e.Since = "node", string(n.State()), n.Reason, n.RequestedAt
	e.Summary = fmt.Sprintf("slot %d of %s: %s", n.Slot, e.state.Pool.Name, n.State())
	switch {
	case n.Coming():
		e.addObstacles()
	case n.State() == node.Ready:
		e.Since = n.ReadyAt
		e.Summary += takenBy[n.Taken]
		if n.Heat.IsHot(e.At) {
			e.Summary += fmt.Sprintf(", and too hot (%d °C): jobs start elsewhere until %s", n.Heat.Celsius,
				ledger.FormatTimeSeen(n.Heat.HotUntil, e.At))
		}
	case n.Kept():
		e.Since = n.Quarantine.Since()
		e.Summary += ", kept for an operator, who resumes or drains it"
		if e.operator && n.Quarantine.Why != "" {
			e.Summary += ": " + n.Quarantine.Why
		}
	case n.State() == node.Draining, n.State() == node.Quarantined:
		e.Summary += ", takes nothing new, and is removed when it is empty"
	}
	if pool := e.state.Pool; n.Slot >= pool.MaxNodes {
		e.Summary += fmt.Sprintf("; %s was made smaller, and no longer has that slot", pool.Name)
	}
	if e.operator {
		e.describeNextSteps(map[string]string{
			plan.StepInUse: "uses it now; its lease ends then", plan.StepAwaited: "waits for it, and gives up then",
			plan.StepNeeded: "is booked on it from then on",
			plan.StepIdle:   "it is removed at the latest, unless something needs it",
		})
	}
}

// explainDraining tells since when a node takes nothing new, and why, as the journal has it.
func (e *explained) explainDraining(r ledger.Reader, n node.Node) error {
	if n.Coming() || n.State() == node.Ready || n.Kept() {
		return nil
	}
	events, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: n.ID,
		Type: "node." + string(n.State())}, 500)
	if err != nil || len(events) == 0 {
		return err
	}
	last := events[len(events)-1]
	e.Since = last.At
	switch {
	case last.Reason == "asked":
		e.Summary += "; an operator asked for it"
		if e.operator && last.Message != "" {
			e.Summary += ": " + last.Message
		}
	case e.operator && last.Reason == "boot_failed" && n.State() != node.Lost:
		return e.explainLoss(r, n)
	case e.operator && last.Message != "":
		e.Summary += "; " + last.Message
	case last.Reason != "":
		e.Summary += "; " + strings.ReplaceAll(last.Reason, "_", " ")
	}
	return nil
}
