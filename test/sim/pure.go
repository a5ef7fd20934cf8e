package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/core/backtest"
)

// Pure replays a trace as Replay does, but with the benchmark of core/backtest
// instead of the system: what it comes to is what Replay should come to.
func Pure(ctx context.Context, trace Trace, opt Options) (Outcome, error) {
	opt = opt.WithDefaults()
	run := backtest.Options{
		Boot: int64(opt.Boot / time.Second), KeepAlive: opt.keepAliveSeconds(), Scored: trace.scoredSpan(),
		Progress: func(done, of int) error {
			if opt.Progress != nil {
				opt.Progress(float64(done) / float64(of))
			}
			return ctx.Err()
		},
	}
	var policies []*foresee
	if opt.Agent {
		var err error
		if policies, err = trace.newPolicies(opt); err != nil {
			return Outcome{}, err
		}
		run.Policy = func(tenant int) backtest.Policy { return policies[tenant] }
	}
	out, err := backtest.Run(trace.backtestTrace(opt), run)
	for _, p := range policies {
		err = errors.Join(err, p.err)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("running the benchmark: %w", err)
	}
	return Outcome{
		Until: trace.To, Jobs: out.Jobs, Starts: out.Jobs, ZeroWaits: out.ZeroWaits,
		MeanWait: time.Duration(out.Mean * float64(time.Second)), P95Wait: time.Duration(out.P95) * time.Second,
		BusyHours: out.BusyHours, IdleHours: out.IdleHours, BootHours: out.BootHours,
	}, nil
}

// keepAliveSeconds is the benchmark's keep-alive in seconds. The shortest one of the system
// only gives an agent time to ask, which the benchmark's policies need not.
func (o Options) keepAliveSeconds() int64 {
	if o.KeepAlive <= time.Second {
		return 0
	}
	return int64(o.KeepAlive / time.Second)
}

func (t Trace) scoredSpan() backtest.Span {
	return backtest.Span{From: t.From.Unix(), Last: t.To.Unix()}
}

// backtestTrace returns what is replayed in the benchmark's form. The jobs that run when
// the scored part begins come first, and end when they did.
func (t Trace) backtestTrace(opt Options) backtest.Trace {
	names := t.tenantNames()
	index := map[string]int{}
	for i, name := range names {
		index[name] = i
	}
	begin := t.From.Add(-opt.settlingTime())
	out := backtest.Trace{Tenants: names}
	add := func(job history.Record, submit time.Time, duration time.Duration) {
		out.Jobs = append(out.Jobs, backtest.Job{
			ID: job.ID, Submit: submit.Unix(), Duration: max(1, int64(duration/time.Second)), GPUs: job.GPUs,
			Tenant: index[job.Tenant],
		})
	}
	for _, job := range t.runningJobs() {
		add(job, begin, jobEnd(job).Sub(begin.Add(opt.Boot)))
	}
	for _, job := range t.Jobs {
		add(job, job.Submitted, job.Duration)
	}
	return out
}
