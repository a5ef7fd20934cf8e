package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/jobs"
	"github.com/forewarm/forewarm/node/report"
)

// openJobs opens the jobs that run here. Without holds none is taken, for a reason that is given; those
// of an earlier daemon are told all the same.
func (c config) openJobs(ctx context.Context, holds *hold.Keeper, none string, reporter *report.Reporter,
	hurry chan<- struct{}, log *slog.Logger) (*jobs.Keeper, error) {
	return jobs.Open(ctx, jobs.Config{Dir: filepath.Join(c.StateDir, "jobs"), Holds: holds,
		Refusal: "the node takes no jobs: " + none, Runner: append(slices.Clone(launcher[:1]), jobArgument),
		Store: c.storeOutput(reporter), Hurry: func() { ring(hurry) }, Log: log})
}

var errNotJoined = errors.New("the daemon has not joined yet")

// storeOutput returns what sends the output of jobs to the control plane, with the node's key as it is
// by then.
func (c config) storeOutput(reporter *report.Reporter) func(context.Context, string, contract.JobOutputPart) (
	contract.JobOutputStored, error) {
	doer := httpx.NewClient(httpx.Config{UserAgent: "forewarm-node/" + versionText()})
	return func(ctx context.Context, jobID string, part contract.JobOutputPart) (contract.JobOutputStored, error) {
		key := reporter.Key()
		if key.IsZero() {
			return contract.JobOutputStored{}, errNotJoined
		}
		api, err := client.New(c.URL, key.Reveal(), doer)
		if err != nil {
			return contract.JobOutputStored{}, err
		}
		return api.PutJobOutput(ctx, c.Node, jobID, part)
	}
}
