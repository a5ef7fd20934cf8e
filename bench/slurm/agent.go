package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/evidence"
)

// forecaster is the real agent in the accelerated week: its clock is the timeline, its
// history is of that week and of those before it, and the plan that it sends is
// brought back to the machine's time. It has no model, and sees only what squeue
// has shown by now.
type forecaster struct {
	agent   *agent.Agent
	cluster *cluster
	line    timeline
	seen    map[string]history.Record
	placed  int                    // reservations that it was given
	refused int                    // windows that the control plane refused, whole or in part
	holds   atomic.Pointer[string] // what it decided last, and why
}

// registering is how long Slurm takes, by the machine's clock, from the end of a boot until
// the job runs that waited for it: the agent is told what people wait.
const registering = 25 * time.Second

// newForecaster makes the agent, and has it learn the weeks before.
func newForecaster(ctx context.Context, o options, c *cluster, p *controlPlane, line timeline) (*forecaster, error) {
	api, err := p.newAgentKey(ctx, o)
	if err != nil {
		return nil, err
	}
	coldWait := line.ofWeek(o.boot + registering)
	predictor, err := predict.New(predict.Config{MaxGPUs: o.nodes * perNode,
		Terms: evidence.Terms{WaitPrice: o.waitWorth, GPUPrice: 1, Boot: coldWait}}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the predictor: %w", err)
	}
	scrub, err := redact.New(redact.Config{})
	if err != nil {
		return nil, fmt.Errorf("making the redactor: %w", err)
	}
	log, err := os.Create(filepath.Join(p.dir, "agent.log"))
	if err != nil {
		return nil, fmt.Errorf("making the agent's log: %w", err)
	}
	f := &forecaster{cluster: c, line: line, seen: map[string]history.Record{}}
	f.agent, err = agent.New(agent.Config{PoolID: p.pool.ID, Mode: agent.Auto, Clock: line,
		Logger: slog.New(slog.NewTextHandler(log, nil)), Predict: predictor, Scrub: scrub,
		Control: translator{api, line}, Pools: api,
		Place: place.Config{WaitWorth: o.waitWorth, Boot: coldWait, MaxGPUs: o.nodes * perNode}})
	if err != nil {
		return nil, err
	}
	f.holds.Store(new(string))
	return f, f.agent.Handle(ctx, pastRecords(o, line))
}

// pastRecords are the jobs of the weeks before, as if none had waited.
func pastRecords(o options, line timeline) []source.Item {
	var items []source.Item
	for number := -o.weeksBefore; number < 0; number++ {
		for _, s := range makeWeek(o.seed, number, line.monday.AddDate(0, 0, 7*number)) {
			for task := range s.tasks {
				r := history.Record{ID: fmt.Sprintf("%s.%d", s.name, task+1), Submitted: s.at, Started: s.at,
					Ended: s.at.Add(s.length), Duration: s.length, GPUs: s.nodes * s.gpus, State: history.Completed}
				items = append(items, source.Item{Record: &r})
			}
		}
	}
	return items
}

// queueColumns are those that docs/agent.md has people write to a file.
const queueColumns = "JobArrayID:|,SubmitTime:|,StartTime:|,EndTime:|,State:|,Account:|,Partition:|,NumNodes:|," +
	"tres-alloc:|,tres-per-job:|,tres-per-node:|,UserName:|,Name:|"

// step reads the queue and has the agent predict and place.
func (f *forecaster) step(ctx context.Context) error {
	said, err := f.cluster.command(ctx, ours, "squeue", "--array", "--states=all", "--partition=elastic",
		"-O", queueColumns).Output()
	if err != nil {
		return fmt.Errorf("reading the queue: %w", err)
	}
	news, err := f.readQueue(said)
	if err != nil {
		return err
	}
	if err := f.agent.Handle(ctx, news); err != nil {
		return fmt.Errorf("handing the queue to the agent: %w", err)
	}
	report, err := f.agent.Step(ctx)
	if err != nil {
		return fmt.Errorf("the agent's step: %w", err)
	}
	f.holds.Store(&report.Choices[0].Why)
	for _, w := range report.Outcome.Windows {
		f.placed += w.Placed
		if len(w.Blockers) > 0 {
			f.refused++
		}
	}
	return nil
}

// readQueue finds what is new in the queue, in the time of the week.
func (f *forecaster) readQueue(text []byte) ([]source.Item, error) {
	rows := history.NewScanner(bytes.NewReader(text), history.NewSqueue(history.Options{OwnUser: ours}))
	var news []source.Item
	for rows.Scan() {
		r := rows.Record()
		if old, known := f.seen[r.ID]; known && old == r {
			continue
		}
		f.seen[r.ID] = r
		for _, at := range []*time.Time{&r.Submitted, &r.Started, &r.Ended} {
			if !at.IsZero() {
				*at = f.line.weekAt(*at)
			}
		}
		r.Duration = 0
		news = append(news, source.Item{Record: &r})
	}
	if r := rows.Report(); rows.Err() != nil || r.Broken > 0 {
		return nil, errors.Join(fmt.Errorf("of the queue %d rows cannot be read", r.Broken), rows.Err())
	}
	return news, nil
}

// translator sends the agent's plans in the machine's time.
type translator struct {
	*client.Client
	line timeline
}

// SetDemand sends what the plan asks for from now on. Its ends are in whole seconds, so
// that a plan that says the same is the same.
func (c translator) SetDemand(ctx context.Context, plan contract.AgentPlan) (contract.PlanOutcome, error) {
	now := time.Now().UTC().Truncate(time.Second)
	out := contract.AgentPlan{PoolID: plan.PoolID, Windows: []contract.AgentWindow{}}
	for _, w := range plan.Windows {
		w.Start = c.line.machineAt(w.Start).UTC().Truncate(time.Second)
		w.End = c.line.machineAt(w.End).UTC().Truncate(time.Second).Add(time.Second)
		if w.Start.Before(now) {
			w.Start = now
		}
		if w.Start.Before(w.End) {
			out.Windows = append(out.Windows, w)
		}
	}
	return c.Client.SetDemand(ctx, out)
}
