package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
)

// TroubleAfter is how many failures in a row make a trouble: fewer pass every day.
const TroubleAfter = 3

// Trouble is work at a provider that fails again and again, and is tried again for
// ever.
type Trouble struct {
	Kind    string // of its task
	Subject string // a node, or a provisioner by name
	Count   int    // failures in a row
	At      time.Time
	Message string // of the last failure; for operators
}

// troublesome are the kinds of task whose failures are their provider's.
var troublesome = []string{TaskCreateNode, TaskCheckNode, TaskSweep}

// Troubles is all that fails again and again, what failed most first.
type Troubles []Trouble

// Troubles reads what fails again and again.
func (l Reporting) Troubles(r Reader) (Troubles, error) { return readTroubles(r) }

func readTroubles(r Reader) (Troubles, error) {
	failing, err := r.Failing(TroubleAfter)
	if err != nil {
		return nil, err
	}
	var all Troubles
	for _, t := range failing {
		if slices.Contains(troublesome, t.Kind) {
			all = append(all, Trouble{Kind: t.Kind, Subject: t.Subject, Count: t.Failures, At: t.FailedAt,
				Message: clipText(t.LastError, 300)})
		}
	}
	return all, nil
}

// Of returns the trouble with a node, nil if there is none.
func (t Troubles) Of(nodeID string) *Trouble {
	return t.firstTrouble(func(x Trouble) bool { return x.Kind != TaskSweep && x.Subject == nodeID })
}

// In returns the worst trouble of a pool: with one of its nodes, or with listing
// the machines of one of its provisioners. Nil if there is none.
func (t Troubles) In(s PoolState) *Trouble {
	ids := map[string]bool{}
	for _, n := range s.Nodes {
		ids[n.ID] = true
	}
	return t.firstTrouble(func(x Trouble) bool {
		return x.Kind != TaskSweep && ids[x.Subject] || x.Kind == TaskSweep && usesProvisioner(s.Pool, x.Subject)
	})
}

func (t Troubles) firstTrouble(is func(Trouble) bool) *Trouble {
	if i := slices.IndexFunc(t, is); i >= 0 {
		return &t[i]
	}
	return nil
}

// ReportWorks tells the journal, once, that a task which was a trouble works.
func (l Tasks) ReportWorks(ctx context.Context, t Task) error {
	if t.Failures < TroubleAfter {
		return nil
	}
	return l.inOwnTx(ctx, SystemActor("worker"), func(tx *groupTx) error {
		return tellTrouble(tx, t, "works_again", fmt.Sprintf("its provider works again after %s in a row",
			phrase.Count(t.Failures, "failure")))
	})
}

// tellTrouble journals what a provider's trouble came to. Only operators see it.
func tellTrouble(tx *groupTx, t Task, what, message string) error {
	switch t.Kind {
	case TaskSweep:
		tx.addEvent(Event{Type: "provisioner." + what, Subject: t.Subject, Reason: "provider_failing", Message: message})
	case TaskCreateNode, TaskCheckNode:
		n, err := tx.port.Node(t.Subject)
		if err != nil {
			return fmt.Errorf("reading node: %w", err)
		}
		tx.addEvent(Event{Type: "node." + what, Subject: n.ID, PoolID: n.PoolID, Reason: "provider_failing",
			Message: message})
	}
	return nil
}
