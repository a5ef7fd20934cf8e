package report

import (
	"fmt"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// explainCleaning tells of what holders gave back on a node and what is not proved clean yet:
// what it waits for, since when, and what comes of it. Whose work it was is told to operators.
func (e *explained) explainCleaning(r ledger.Reader, n node.Node) error {
	for _, c := range e.state.Pool.Cleaning {
		if !c.Doubts(n.ID) {
			continue
		}
		b, err := e.describeDoubt(r, n, c)
		if err != nil {
			return err
		}
		e.Blockers = append(e.Blockers, b)
	}
	return nil
}

// describeDoubt says what a node has yet to prove of one allocation.
func (e *explained) describeDoubt(r ledger.Reader, n node.Node, c learned.Cleaning) (ledger.Blocker, error) {
	of := "an earlier holder"
	if e.operator {
		of = "allocation " + c.ID
	}
	b := ledger.Blocker{Code: ledger.ReasonNotClean,
		Evidence: []string{"awaited since " + ledger.FormatTimeSeen(c.Since, e.At)}}
	if c.Awaits(n.ID) {
		due := c.Overdue()
		b.Message = fmt.Sprintf("%s: nobody gets them before the node's daemon has proved that nothing of %s is left; "+
			"without that proof by %s the node is quarantined", whatIsDirty(c), of, ledger.FormatTimeSeen(due, e.At))
		b.ClearsAt = &ledger.Band{P10: e.At, P50: e.At, P90: due}
		if e.operator {
			b.Fix = "forewarm nodes show " + n.ID
		}
		return b, nil
	}
	e.hopeless = true
	b.Message = fmt.Sprintf("%s: the node's daemon did not prove that nothing of %s is left, and goes on trying",
		whatIsDirty(c), of)
	if !e.operator {
		b.Message += "; ask an operator"
		return b, nil
	}
	b.Message += fmt.Sprintf("; resume awaits its proof anew for %s, drain gives the machine up",
		phrase.Length(learned.CleanWithin))
	b.Fix = "forewarm nodes resume " + n.ID + " (or drain)"
	said, err := r.Events(ledger.Scope{All: true},
		ledger.EventFilter{Subject: c.ID, Type: "allocation.not_cleaned"}, recentDecisions)
	if err == nil && len(said) > 0 {
		last := said[len(said)-1]
		b.Evidence = append(b.Evidence, ledger.FormatTimeSeen(last.At, e.At)+": "+last.Message)
	}
	return b, err
}

// whatIsDirty names the GPUs that a cleaning keeps back.
func whatIsDirty(c learned.Cleaning) string {
	return phrase.Count(len(c.UUIDs), "GPU") + " not proved clean"
}
