package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
)

// explainedPeriod is how far back the starts in a pool are counted.
const explainedPeriod = 7 * 24 * time.Hour

// Uses of a pool, as states.
const (
	useReserved = "reserved"
	useObserved = "observed"
)

// ExplainPool explains a pool, by id or name: how much of it is ready, what stands in the
// way of more, and, where a cluster's own scheduler places the work, for what that waits.
// A tenant's starts are its own, and what others wait for is the operators' to know.
func (l Reporting) ExplainPool(ctx context.Context, actor ledger.Actor, idOrName string) (ledger.Explanation, error) {
	var e *explained
	err := l.Store.Read(ctx, func(rd ledger.Reader) error {
		p, err := ledger.LivePool(rd, idOrName)
		if err != nil {
			return err
		}
		if e, err = beginExplanation(l.Engine, rd, actor, p.ID, p.ID); err != nil {
			return err
		}
		e.explainPool()
		if !p.Observed {
			return nil
		}
		if err := e.explainLate(rd, actor.Scope()); err != nil {
			return err
		}
		return e.explainWaits(rd, actor.Scope())
	})
	if err != nil {
		return ledger.Explanation{}, err
	}
	return e.finishExplanation(), nil
}

func (e *explained) explainPool() {
	p := e.state.Pool
	e.Kind, e.State, e.Since = "pool", useReserved, p.CreatedAt
	ready := 0
	for _, n := range e.state.Nodes {
		if n.State() == node.Ready {
			ready++
		}
	}
	e.Summary = fmt.Sprintf("%s: %d of at most %s ready", p.Name, ready, phrase.Count(p.MaxNodes, "node"))
	if p.Observed {
		e.State = useObserved
		e.Summary = fmt.Sprintf("%s: %d of at most %s kept warm", p.Name, ready, phrase.Count(p.MaxNodes, "node"))
	}
	if p.Recovery.Active() {
		e.blockByRecovery()
	}
	e.blockWithoutWorker()
	if t := e.troubles.In(e.state); t != nil && t.Kind != ledger.TroubleBoot {
		b := ledger.Blocker{Code: ledger.CodeProviderFailing, Message: ledger.ProviderRefuses}
		if e.operator {
			b.Message = "its provider keeps failing; it is retried forever"
			b.Evidence = []string{fmt.Sprintf("%s in a row, last %s: %s", phrase.Count(t.Count, "time"),
				ledger.FormatTimeSeen(t.At, e.At), t.Message)}
		}
		e.Blockers = append(e.Blockers, b)
	}
}

// explainWaits tells waits for a boot apart from those that no warm node would have spared.
func (e *explained) explainWaits(r ledger.Reader, s ledger.Scope) error {
	got, err := r.WorkStarts(s, e.PoolID, e.At.Add(-explainedPeriod), e.At)
	if err != nil {
		return err
	}
	e.Summary += fmt.Sprintf("; %d of %s in %s did not wait for a boot", got.ZeroWaits,
		phrase.Count(got.Starts, "start"), phrase.Length(explainedPeriod))
	if e.Waits = got.Waits; !s.All {
		return nil
	}
	seen, err := r.Watched(e.state.Pool.Provisioner)
	if err != nil {
		return err
	}
	if blind := seen.BlindSince; !blind.IsZero() && e.At.Sub(blind) >= ledger.BlindAfter {
		e.Summary += "; no look at it was complete since " + ledger.FormatTimeSeen(blind, e.At)
	}
	for _, w := range seen.Waiting {
		if w.PoolID == e.PoolID {
			e.addWaiting(w.Reason, w.Count)
		}
	}
	booting := 0
	for _, a := range e.state.Allocations {
		if a.Observed() && a.State() == allocation.Pending {
			booting++
		}
	}
	e.addWaiting(allocation.WaitedBoot, booting)
	slices.SortFunc(e.Waits, func(a, b ledger.WorkWaits) int { return cmp.Compare(a.Reason, b.Reason) })
	return nil
}

// addWaiting notes how much work waits for something now.
func (e *explained) addWaiting(reason string, count int) {
	i := slices.IndexFunc(e.Waits, func(w ledger.WorkWaits) bool { return w.Reason == reason })
	switch {
	case count == 0:
	case i < 0:
		e.Waits = append(e.Waits, ledger.WorkWaits{Reason: reason, Waiting: count})
	default:
		e.Waits[i].Waiting = count
	}
}
