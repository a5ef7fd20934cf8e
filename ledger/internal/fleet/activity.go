package fleet

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// recordActivity adds what a beat says of the GPUs of a node to what was known, and returns the
// stretches that are open now. Most beats say nothing new: then nothing more is written than
// that the daemon was heard.
func recordActivity(tx *txn.Tx, n node.Node, before ledger.Presence, b ledger.Beat) ([]activity.Open, error) {
	if before.BootID != b.BootID { // nobody looked while its machine booted
		addStretches(tx, n.ID, activity.Until(before.Activity, before.SeenAt))
		before = ledger.Presence{}
	}
	open, ended := activity.Record(before.Activity, before.SeenAt, b.Activity, tx.Now())
	addStretches(tx, n.ID, ended)
	return open, wakeForIdleness(tx, n.PoolID, before.Activity, open)
}

// wakeForIdleness has a pool planned when whoever holds a GPU that has just been found to be
// idle is to be warned.
func wakeForIdleness(tx *txn.Tx, poolID string, before, after []activity.Open) error {
	since := newestIdleness(before, after)
	if since.IsZero() {
		return nil
	}
	p, err := tx.Port.Pool(poolID)
	if err == nil && p.Timers.IdleWarn > 0 {
		tx.WakePlanAt(poolID, since.Add(p.Timers.IdleWarn))
	}
	return err
}

func addStretches(tx *txn.Tx, nodeID string, ended []activity.Stretch) {
	for _, s := range ended {
		tx.Change.GPUStretches = append(tx.Change.GPUStretches, ledger.GPUStretch{NodeID: nodeID, Stretch: s})
	}
}

// newestIdleness is since when the GPU has been idle that was found to be so last; zero: none was
// that was not before.
func newestIdleness(before, after []activity.Open) (since time.Time) {
	was := map[string]bool{}
	for _, o := range before {
		was[o.GPU] = o.Idle
	}
	for _, o := range after {
		if o.Idle && !was[o.GPU] && o.Since.After(since) {
			since = o.Since
		}
	}
	return since
}

// readIdle reads which allocations of a pool are idle, if its policy asks for that.
func readIdle(tx *txn.Tx, s *plan.Snapshot) (map[string]plan.Idleness, error) {
	if s.Pool.Timers.IdleWarn == 0 {
		return nil, nil
	}
	return ledger.IdleAllocations(tx.Port, s.Allocations)
}

// warnIdle tells the holder of an allocation that its GPUs are idle, and what follows.
func warnIdle(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, warning plan.Action) {
	idle := plan.Idleness{Since: warning.Facts.IdleSince, Seen: warning.Facts.IdleSeen}
	a.IdleWarnedAt = tx.Now()
	p.PutAllocation(a)
	message := "its GPUs have done nothing for " + phrase.Span(idle.Length())
	if at := idle.ReclaimAt(p.Pool.Timers, a.IdleWarnedAt); !at.IsZero() {
		message += "; unless they do something, it ends at " + ledger.FormatTimeSeen(at, tx.Now())
	}
	tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.idle", Subject: a.ID,
		PoolID: p.Pool.ID, Reason: warning.Reason, Message: message})
}

// checkIdlePolicy checks what a pool does about idle GPUs: nobody loses any unwarned.
func checkIdlePolicy(p capacity.Pool) error {
	warn, reclaim := p.Timers.IdleWarn, p.Timers.IdleReclaim
	invalid := func(field, rule string) error { return &ledger.InvalidError{Field: field, Rule: rule} }
	switch {
	case p.Observed && warn != 0:
		return invalid(fieldIdleWarn, "must be 0 in an observed pool, whose work is its cluster's affair")
	case p.Observed && reclaim != 0:
		return invalid(fieldIdleReclaim, "must be 0 in an observed pool, whose work is its cluster's affair")
	case warn != 0 && (warn < activity.Grain || warn > ledger.MaxTimer):
		return invalid(fieldIdleWarn, fmt.Sprintf("must be 0, for no warning, or between %s and %s",
			inSeconds(activity.Grain), inSeconds(ledger.MaxTimer)))
	case reclaim != 0 && warn == 0:
		return invalid(fieldIdleReclaim, "must be 0 while idle_warn_after_seconds is: nobody loses GPUs unwarned")
	case reclaim != 0 && (reclaim <= warn || reclaim > ledger.MaxTimer):
		return invalid(fieldIdleReclaim, fmt.Sprintf("must be 0, for never, or more than "+
			"idle_warn_after_seconds, %s, and at most %s", inSeconds(warn), inSeconds(ledger.MaxTimer)))
	}
	return nil
}

const (
	fieldIdleWarn    = "idle_warn_after_seconds"
	fieldIdleReclaim = "idle_reclaim_after_seconds"
)
