package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
)

// Codes of what keeps nodes of an observed pool from being warm.
const (
	codeBootFailed = "boot_failed"
	codeBlind      = "blind"
	codePoolFull   = "max_nodes"
)

// failedBootsShown is how far back nodes that did not boot are told of.
const failedBootsShown = 24 * time.Hour

// explainLate tells why promises of an observed pool are not warm in time, or will not be: a
// tenant hears of its own.
func (e *explained) explainLate(r ledger.Reader, s ledger.Scope) error {
	var late, queued []string
	for _, x := range e.state.Reservations {
		own := s.All || x.OrganizationID == s.OrganizationID
		switch {
		case !own:
		case x.State() == reservation.Waitlisted:
			queued = append(queued, x.ID)
		case x.State() != reservation.Ready && (x.Degraded || !x.Window.Start.After(e.At)):
			late = append(late, x.ID)
		}
	}
	slices.Sort(late)
	slices.Sort(queued)
	if len(late) > 0 {
		e.Summary += fmt.Sprintf("; %s late", phrase.Count(len(late), "promise"))
		if !e.state.Pool.Recovery.Active() && e.noWorker == nil {
			e.addObstaclesOf(late...)
		}
	}
	if len(queued) > 0 {
		b := ledger.Blocker{Code: codePoolFull, Evidence: queued, Message: fmt.Sprintf(
			"%s in the queue: all that max_nodes allows (%d) is promised then", phrase.Count(len(queued), "reservation"),
			e.state.Pool.MaxNodes)}
		if e.operator {
			b.Fix = "forewarm pools edit " + e.state.Pool.Name + " --help"
		}
		e.Blockers = append(e.Blockers, b)
	}
	if !e.operator {
		return nil
	}
	if err := e.addFailedBoots(r); err != nil {
		return err
	}
	return e.addBlindness(r)
}

// addFailedBoots tells what nodes did not boot, and how they are brought back.
func (e *explained) addFailedBoots(r ledger.Reader) error {
	failed, err := fleet.FailedBoots(r, e.PoolID, e.At.Add(-failedBootsShown))
	if err != nil || len(failed) == 0 {
		return err
	}
	b := ledger.Blocker{Code: codeBootFailed, Message: "nodes did not boot; promises move to others while there are any"}
	for _, x := range failed {
		b.Evidence = append(b.Evidence, fmt.Sprintf("%s, %s: %s", x.Subject, ledger.FormatTimeSeen(x.At, e.At), x.Message))
	}
	e.Blockers = append(e.Blockers, b)
	return nil
}

func (e *explained) addBlindness(r ledger.Reader) error {
	seen, err := r.Watched(e.state.Pool.Provisioner)
	if err != nil {
		return err
	}
	blind := seen.BlindSince
	if blind.IsZero() || e.At.Sub(blind) < ledger.BlindAfter {
		return nil
	}
	e.Blockers = append(e.Blockers, ledger.Blocker{Code: codeBlind,
		Message:  "the cluster cannot be watched: what begins meanwhile is learned of later, or never",
		Evidence: []string{"no look at it was complete since " + ledger.FormatTimeSeen(blind, e.At)},
		Fix:      "forewarm pools show " + cmp.Or(e.state.Pool.Name, e.PoolID)})
	return nil
}

// explainLoss tells an operator what was said of a node when it was lost.
func (e *explained) explainLoss(r ledger.Reader, n node.Node) error {
	lost, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: n.ID, Type: "node.lost"}, 1)
	if err == nil && len(lost) > 0 {
		e.Summary += "; " + lost[0].Message
	}
	return err
}
