package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// timed is a policy whose time is taken.
type timed struct {
	policy *forewarnedTenant
	spent  *time.Duration
	looks  *int
}

func (t timed) Submit(now int64, j backtest.Job) {
	defer t.addElapsed(time.Now())
	t.policy.Submit(now, j)
}

func (t timed) End(now int64, j backtest.Job, started int64) {
	defer t.addElapsed(time.Now())
	t.policy.End(now, j, started)
}

func (t timed) Next() int64 { return t.policy.Next() }

func (t timed) Target(now int64) int {
	*t.looks++
	defer t.addElapsed(time.Now())
	return t.policy.Target(now)
}

func (t timed) addElapsed(since time.Time) { *t.spent += time.Since(since) }

// measureCosts replays a scenario once more, alone and with one price, and writes what
// the forecaster takes: the time of a look with its decision and all that is
// learned and counted between two looks, and the bytes that are kept of the
// largest tenant class, with the rules that run in shadow.
func (r *report) measureCosts(ctx context.Context, out io.Writer) error {
	s := r.scenario
	fleet := forecast.NewOnlineModel(s.prior)
	experts := forecast.NewExperts()
	var spent time.Duration
	var looks int
	p := forecast.Prices{WaitWorth: prices[1], Boot: float64(s.boot)}
	_, err := backtest.Run(s.trace, backtest.Options{Boot: s.boot, Progress: func(int, int) error { return ctx.Err() },
		Policy: func(tenant int) backtest.Policy {
			f := newForewarned(fleet, s.trace.Tenants[tenant], p)
			f.shadows = experts.Class(f.tenant)
			return timed{f, &spent, &looks}
		}})
	if err != nil {
		return fmt.Errorf("timing the forecaster: %w", err)
	}
	largest := 0
	for _, name := range s.trace.Tenants {
		t, err := fleet.Tenant(name)
		if err != nil {
			return fmt.Errorf("measuring the forecaster's state: %w", err)
		}
		largest = max(largest, t.Bytes()+experts.Class(t).Bytes())
	}
	fmt.Fprintf(out, "figure: %s_forewarm_look_us %.1f us\n", r.figurePrefix(),
		float64(spent.Nanoseconds())/1000/float64(max(1, looks)))
	fmt.Fprintf(out, "figure: %s_forewarm_state_bytes %d B\n", r.figurePrefix(), largest)
	return nil
}
