package report

import (
	"fmt"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// addObstacles tells what the subject's nodes still lack.
func (e *explained) addObstacles() {
	if e.state.Pool.Recovery.Active() {
		e.blockByRecovery()
		return
	}
	if !e.blockWithoutWorker() {
		e.addObstaclesOf(e.Subject)
	}
}

// addObstaclesOf tells what the nodes of some subjects still lack.
func (e *explained) addObstaclesOf(subjects ...string) {
	found := map[string]*ledger.Blocker{}
	var all []plan.Obstacle
	for _, subject := range subjects {
		all = append(all, e.outlook.Obstacles(subject)...)
	}
	for _, o := range all {
		b, evidence := e.describeObstacle(o)
		if known := found[b.Code]; known != nil {
			b = known
		}
		found[b.Code] = b
		b.Evidence = append(b.Evidence, evidence)
		if until := o.Until; until.After(e.At) && (b.ClearsAt == nil || until.After(b.ClearsAt.P90)) {
			b.ClearsAt = &ledger.Band{P10: until, P50: until, P90: until}
		}
	}
	for _, code := range txn.SortedKeys(found) {
		b := found[code]
		if b.ClearsAt != nil {
			b.Message = fmt.Sprintf("%s before %s", b.Message, ledger.FormatTimeSeen(b.ClearsAt.P90, e.At))
		}
		e.Blockers = append(e.Blockers, *b)
	}
}

// describeObstacle is what one comes to, and the evidence. Of a provider that fails again
// and again no time is promised.
func (e *explained) describeObstacle(o plan.Obstacle) (*ledger.Blocker, string) {
	if o.Node == nil || !o.Node.Coming() {
		return &ledger.Blocker{Code: o.Code, Message: lacking[o.Code]}, e.obstacleEvidence(o)
	}
	t := e.troubles.Of(o.Node.ID)
	if t == nil {
		return &ledger.Blocker{Code: o.Code, Message: lacking[o.Code]}, e.obstacleEvidence(o)
	}
	e.hopeless = true
	b := &ledger.Blocker{Code: ledger.CodeProviderFailing, Message: ledger.ProviderRefuses}
	if !e.operator {
		return b, e.obstacleEvidence(o)
	}
	b.Message, b.Fix = "its provider keeps failing; it is retried forever", "forewarm nodes show "+o.Node.ID
	return b, fmt.Sprintf("%s, %s in a row, last %s: %s", e.obstacleEvidence(o), phrase.Count(t.Count, "time"),
		ledger.FormatTimeSeen(t.At, e.At),
		t.Message)
}

// lacking says what each obstacle means; one with a time goes on with when that is.
var lacking = map[string]string{
	plan.LacksNode:    "a node is requested now",
	plan.LacksBoot:    "nodes are on their way",
	plan.LacksRemoval: "a node must be gone before the next one can take its slot",
	plan.LacksSlot:    "the pool was made smaller, and no longer has the slot",
	plan.LacksDevices: "the lease before is not given back; it is not over",
	plan.LacksPrewarm: "pre-warming for speculative reservations is paused; no node is requested",
	plan.HeldRefused:  "the provider had no stock; no node is requested",
	plan.HeldUnfit: "the last machines had the same fault at the health gate, so none is requested until an " +
		"operator edits the pool",
	plan.HeldTrial: "after many failures one node is tried first; the next is requested when it is ready",
	plan.HeldCapped: "as many nodes as max_creates allows were requested lately and served nobody; this one is not " +
		"requested",
}

func (e *explained) obstacleEvidence(o plan.Obstacle) string {
	switch {
	case o.Node == nil && o.Code == plan.HeldUnfit:
		return fmt.Sprintf("slot %d; %s in a row: %s", o.Slot, phrase.Count(e.state.Pool.UnfitInRow, "machine"),
			e.state.Pool.Unfit)
	case o.Node == nil && o.Code == plan.HeldRefused && e.state.Pool.Blocks > 0:
		return fmt.Sprintf("slot %d; nothing %s in a row, and so perhaps the next time; at this hour %.0f %% are given",
			o.Slot, phrase.Count(e.state.Pool.Blocks, "time"),
			100*e.state.Pool.Odds(e.At))
	case o.Node == nil && o.Code == plan.HeldCapped:
		limit, window := plan.Creates(e.state.Pool.Pool)
		seen := e.state.Snapshot()
		unserved := seen.Unserved(e.At)
		return fmt.Sprintf("slot %d before %s; %d of at most %d in %s", o.Slot, ledger.FormatTimeSeen(o.Until, e.At),
			unserved.Sum(window, e.At), limit, phrase.Length(window))
	case o.Slot < 0:
		return e.state.Pool.Name
	case o.Node == nil:
		return fmt.Sprintf("slot %d", o.Slot)
	case o.Node.Coming():
		return fmt.Sprintf("%s %s for %s", o.Node.ID, o.Node.State(), phrase.Span(e.At.Sub(o.Node.RequestedAt)))
	default:
		return fmt.Sprintf("%s %s", o.Node.ID, o.Node.State())
	}
}
