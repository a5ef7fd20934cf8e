package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/evidence"
)

// dryAgent is the real agent on the simulated cluster, which is its clock and its control
// plane.
type dryAgent struct {
	agent *agent.Agent
	now   time.Time
	room  contract.PoolRoom
	plan  contract.AgentPlan
	nodes *dryPacker // what it is told of instead of jobs; nil: jobs
	outbox.Receiver
}

// dryMode is what the agent is told.
type dryMode string

const (
	unaware dryMode = "jobs"  // jobs
	aware   dryMode = "room"  // jobs, and what is free: the agent as it is
	ofNodes dryMode = "nodes" // uses of whole nodes instead of jobs, which no agent is yet
)

// dryPoolID is that of the simulated cluster.
const dryPoolID = "pol_00000000000000000000000001"

// newDryAgent makes the agent and has it learn the weeks before.
func newDryAgent(o options, cold time.Duration, mode dryMode) (*dryAgent, error) {
	line := o.newTimeline(time.Time{})
	d := &dryAgent{now: line.monday}
	most := o.nodes * perNode
	predictor, err := predict.New(predict.Config{MaxGPUs: most,
		Terms: evidence.Terms{WaitPrice: o.waitWorth, GPUPrice: 1, Boot: cold}}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the predictor: %w", err)
	}
	scrub, err := redact.New(redact.Config{})
	if err != nil {
		return nil, fmt.Errorf("making the redactor: %w", err)
	}
	cfg := agent.Config{PoolID: dryPoolID, Mode: agent.Auto, Clock: d, Logger: slog.New(slog.DiscardHandler),
		Predict: predictor, Scrub: scrub, Control: d,
		Place: place.Config{WaitWorth: o.waitWorth, Boot: cold, MaxGPUs: most}}
	if mode == aware {
		cfg.Pools = d
	}
	if d.agent, err = agent.New(cfg); err != nil {
		return nil, err
	}
	past := pastRecords(o, line)
	if mode == ofNodes {
		d.nodes = &dryPacker{on: map[int][]int{}, emit: d.tellUse}
		if past, err = pastUses(o, line); err != nil {
			return nil, err
		}
	}
	return d, d.agent.Handle(context.Background(), past)
}

// Now is the second of the simulated cluster.
func (d *dryAgent) Now() time.Time { return d.now }

// SetDemand notes the plan.
func (d *dryAgent) SetDemand(_ context.Context, plan contract.AgentPlan) (contract.PlanOutcome, error) {
	d.plan = plan
	return contract.PlanOutcome{}, nil
}

// Pool is the simulated cluster.
func (d *dryAgent) Pool(context.Context, string) (contract.Pool, error) {
	return contract.Pool{ID: dryPoolID, Use: "observed", GPUsPerNode: perNode, Room: &d.room}, nil
}

func (d *dryAgent) submit(at int64, number int, j dryJob) error {
	if d.now = time.Unix(at, 0).UTC(); d.nodes != nil {
		return d.nodes.submit(at, number, j)
	}
	return d.tell(dryRecord(number, j.submit, 0, j.gpus*j.nodes))
}

func (d *dryAgent) end(at int64, number int, j dryJob) error {
	if d.now = time.Unix(at, 0).UTC(); d.nodes != nil {
		return d.nodes.end(at, number, j)
	}
	return d.tell(dryRecord(number, j.submit, at, j.gpus*j.nodes))
}

func (d *dryAgent) tellUse(u dryUse, _ bool) error { return d.tell(useRecord(u)) }

func (d *dryAgent) tell(r history.Record) error {
	return d.agent.Handle(context.Background(), []source.Item{{Record: &r}})
}

// dryRecord is a row of a history; until is 0 of what has not ended.
func dryRecord(number int, from, until int64, gpus int) history.Record {
	r := history.Record{ID: strconv.Itoa(number), Submitted: time.Unix(from, 0).UTC(), GPUs: gpus, State: history.Running}
	if until > 0 {
		r.Ended, r.State = time.Unix(until, 0).UTC(), history.Completed
	}
	return r
}

// decide has the agent step, and cuts its plan into nodes as the ledger does.
func (d *dryAgent) decide(at int64, room contract.PoolRoom) ([]dryWindow, error) {
	d.now, d.room = time.Unix(at, 0).UTC(), room
	if _, err := d.agent.Step(context.Background()); err != nil {
		return nil, fmt.Errorf("the agent's step: %w", err)
	}
	var windows []dryWindow
	for _, w := range d.plan.Windows {
		windows = append(windows, dryWindow{w.Start.Unix(), w.End.Unix(), (w.GPUs + perNode - 1) / perNode})
	}
	return windows, nil
}
