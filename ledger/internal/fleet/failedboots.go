package fleet

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// reasonBootFailed is why a node is lost that never became ready, where its provider says
// what is wrong with it.
const reasonBootFailed = "boot_failed"

// describeLoss is why a node is lost, as a code and in a sentence.
func describeLoss(n node.Node, loss ledger.Loss) (reason, message string) {
	why := ledger.ClipText(loss.Why, 300)
	switch {
	case loss.Preempted:
		return "preempted", "its provider took it back for somebody else"
	case why != "" && n.State() == node.Booting:
		return reasonBootFailed, "it did not boot: " + why
	case why != "":
		return "missing", "its provider has lost it: " + why
	default:
		return "missing", "its provider does not know it"
	}
}

// Bounds of how many nodes are looked through for those that did not boot.
const (
	mostEnded       = 20
	mostFailedBoots = 3
)

// FailedBoots reads the last nodes of a pool that did not boot since a time, with what
// their provider said of it, newest first: for operators.
func FailedBoots(r ledger.Reader, poolID string, since time.Time) ([]ledger.Event, error) {
	ended, err := r.Nodes(ledger.NodeFilter{PoolID: poolID,
		State: []node.State{node.Lost, node.Deprovisioning, node.Gone}}, ledger.Page{Newest: true, Limit: mostEnded})
	if err != nil {
		return nil, fmt.Errorf("listing nodes that ended: %w", err)
	}
	var found []ledger.Event
	for _, n := range ended {
		if n.Reason != reasonBootFailed || n.RequestedAt.Before(since) || len(found) == mostFailedBoots {
			continue
		}
		events, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: n.ID, Type: "node.lost"}, 1)
		if err != nil {
			return nil, fmt.Errorf("reading why %s did not boot: %w", n.ID, err)
		}
		found = append(found, events...)
	}
	return found, nil
}

// failedBootsTrouble is for how long a node that did not boot is a trouble of its pool.
const failedBootsTrouble = time.Hour

// readBootTroubles reads in which observed pools nodes did not boot lately: nobody but an
// administrator of the cluster brings such a node back.
func readBootTroubles(r ledger.Reader) (ledger.Troubles, error) {
	var all ledger.Troubles
	pools, err := r.Pools(ledger.Page{Limit: 500})
	if err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	for _, p := range pools {
		if !p.Observed || !p.DeletedAt.IsZero() {
			continue
		}
		failed, err := FailedBoots(r, p.ID, r.Now().Add(-failedBootsTrouble))
		if err != nil {
			return nil, err
		}
		if len(failed) > 0 {
			all = append(all, ledger.Trouble{Kind: ledger.TroubleBoot, Subject: p.ID, Count: len(failed),
				At: failed[0].At, Message: failed[0].Message})
		}
	}
	return all, nil
}
