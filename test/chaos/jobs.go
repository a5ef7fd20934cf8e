package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/test/chaos/audit"
	"github.com/forewarm/forewarm/test/chaos/load"
)

// endingJobs is how long jobs may take to be over, once everything is whole: those that were lost
// wait longer after each time.
const endingJobs = 5 * time.Minute

// awaitJobs waits until all jobs are over, before anybody gives back what they have.
func (g *game) awaitJobs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endingJobs)
	defer cancel()
	err := g.awaitQuiet(ctx, func(ctx context.Context) error {
		api, err := g.operatorClient()
		if err != nil {
			return err
		}
		live, some := 0, contract.Job{}
		for j, err := range api.Jobs(ctx, client.JobFilter{}) {
			if err != nil {
				return fmt.Errorf("listing jobs: %w", err)
			}
			live, some = live+1, j
		}
		if live > 0 {
			return fmt.Errorf("%d jobs are not over, such as %s, which is %s (%s: %s)", live, some.ID, some.State,
				some.Reason, some.Detail)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("after %v: %w", endingJobs, err)
	}
	g.printProgress("all jobs are over")
	return nil
}

// judgeJobs asks people what became of jobs, and compares it with what those wrote down.
func (g *game) judgeJobs(ctx context.Context, rows audit.Rows) (audit.JobFaults, error) {
	known := audit.Jobs{Entries: g.journal.Entries(), Told: map[string]contract.Job{}, Output: map[string]string{},
		Events: rows.Events}
	for _, t := range g.load.Tenants() {
		for j, err := range t.API[0].Jobs(ctx, client.JobFilter{Filter: client.Filter{All: true}}) {
			if err != nil {
				return audit.JobFaults{}, fmt.Errorf("listing jobs: %w", err)
			}
			known.Told[j.ID] = j
		}
	}
	if err := g.readOutput(ctx, known); err != nil {
		return audit.JobFaults{}, err
	}
	f, err := os.Open(g.runsPath())
	if err != nil {
		return audit.JobFaults{}, fmt.Errorf("opening the file of runs: %w", err)
	}
	defer f.Close()
	known.Runs, err = audit.ParseRuns(f)
	return known.Judge(), err
}

// readOutput reads what jobs wrote that print.
func (g *game) readOutput(ctx context.Context, known audit.Jobs) error {
	api, err := g.operatorClient()
	if err != nil {
		return err
	}
	var failed error
	for _, e := range known.Entries {
		if e.Op != load.Submit || e.Manner != load.Prints || known.Told[e.ID].State != contract.JobCompleted {
			continue
		}
		var text []byte
		for piece, err := range api.JobOutput(ctx, e.ID, client.OutputQuery{}) {
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("reading the output of job %s: %w", e.ID, err))
				break
			}
			text = append(text, piece.Data...)
		}
		known.Output[e.ID] = string(text)
	}
	return failed
}
