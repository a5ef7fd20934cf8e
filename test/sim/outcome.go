package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Outcome is what a replay came to.
type Outcome struct {
	Until     time.Time // as far as the trace was replayed
	Jobs      int       // asked for
	Starts    int       // got their GPUs before the end
	ZeroWaits int
	MeanWait  time.Duration
	P95Wait   time.Duration
	BusyHours float64 // GPU-hours under allocations
	IdleHours float64 // ready and not under an allocation
	BootHours float64 // paid and not usable
	Orphans   int     // machines that the cloud has and the ledger does not
}

// Overhead is GPU time paid and not computing, in percent of busy time.
func (o Outcome) Overhead() float64 { return percentOf(o.IdleHours+o.BootHours, o.BusyHours) }

// ZeroWaitRate is the share of starts that did not wait, in percent.
func (o Outcome) ZeroWaitRate() float64 { return percentOf(float64(o.ZeroWaits), float64(o.Starts)) }

func percentOf(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// sumOutcome adds up what happened until now.
func (r *run) sumOutcome(ctx context.Context) (Outcome, error) {
	var rep ledger.Report
	live := 0
	err := r.store.Read(ctx, func(rd ledger.Reader) error {
		var err error
		if rep, err = rd.Report(ledger.Scope{All: true}, r.trace.From, r.trace.To); err != nil {
			return err
		}
		for node := range r.cloud.LivePerNode() {
			n, err := rd.Node(node)
			if errors.Is(err, ledger.ErrNotFound) || (err == nil && !n.Billed()) {
				live++
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("adding up: %w", err)
	}
	o := Outcome{
		Until: r.clock.Now(), Jobs: r.asked, Starts: len(r.waits), BusyHours: rep.BusyHours, IdleHours: rep.IdleHours,
		BootHours: rep.BootHours, Orphans: live,
	}
	slices.Sort(r.waits)
	var sum time.Duration
	for _, wait := range r.waits {
		sum += wait
		if wait == 0 {
			o.ZeroWaits++
		}
	}
	if n := len(r.waits); n > 0 {
		o.MeanWait = sum / time.Duration(n)
		o.P95Wait = r.waits[min(n-1, (95*n+99)/100-1)]
	}
	return o, nil
}
