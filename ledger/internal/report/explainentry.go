package report

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// blockByEntry says which nodes of an active allocation its holder's work could not enter now.
func (e *explained) blockByEntry(r ledger.Reader, actor ledger.Actor, a allocation.Allocation) error {
	if a.State() != allocation.Active {
		return nil
	}
	var there []node.Node
	for _, n := range e.state.Nodes {
		if slices.ContainsFunc(a.Devices, func(h allocation.Held) bool { return h.NodeID == n.ID }) {
			there = append(there, n)
		}
	}
	seen, err := txn.DaemonsSeen(r, there)
	if err != nil {
		return fmt.Errorf("asking for the daemons of allocation %s: %w", a.ID, err)
	}
	silent := ledger.Blocker{Code: ledger.WaitsForDaemon, Fix: ledger.FixSilence(actor)}
	barred := ledger.Blocker{Code: "isolation", Fix: "forewarm release " + a.ID +
		", and allocate in another pool, or once the other has gone"}
	for _, n := range there {
		if last := seen[n.ID]; !last.IsZero() && ledger.IsSilent(n, last, e.At) {
			silent.Evidence = append(silent.Evidence, ledger.TellSilence(n.ID, last, e.At))
		}
		if ledger.IsBarred(e.state, n, a) {
			barred.Evidence = append(barred.Evidence, n.ID+": its isolation is "+string(n.Isolation))
		}
	}
	if count := len(silent.Evidence); count > 0 {
		silent.Message = fmt.Sprintf("the daemon of %s is silent: no session begins there before it is back",
			phrase.Count(count, "node"))
		e.Blockers = append(e.Blockers, silent)
	}
	if count := len(barred.Evidence); count > 0 {
		barred.Message = fmt.Sprintf("another organization's work is on %s, which would not keep yours apart from it: "+
			"nothing of yours begins there before that has ended", phrase.Count(count, "node"))
		e.Blockers = append(e.Blockers, barred)
	}
	return nil
}

// explainSilence says of a node that its daemon is silent.
func (e *explained) explainSilence(r ledger.Reader, actor ledger.Actor, n node.Node) error {
	seen, err := txn.DaemonsSeen(r, []node.Node{n})
	if err != nil {
		return fmt.Errorf("asking for the daemon of node %s: %w", n.ID, err)
	}
	if last := seen[n.ID]; !last.IsZero() && ledger.IsSilent(n, last, e.At) {
		e.Blockers = append(e.Blockers, ledger.Blocker{Code: ledger.WaitsForDaemon,
			Message:  "its daemon is silent: no job and no session begins there before it is back",
			Evidence: []string{ledger.TellSilence(n.ID, last, e.At)}, Fix: ledger.FixSilence(actor)})
	}
	return nil
}
