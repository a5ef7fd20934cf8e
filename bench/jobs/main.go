// Command jobs measures jobs from their submission to their recorded result, through server, worker,
// node daemons and PostgreSQL, beside real Slurm daemons. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

var (
	jobs      = flag.Int("jobs", 400, "jobs of a run, of which each is `true` on one GPU")
	starts    = flag.Int("starts", 200, "jobs that are submitted one after another, each to idle nodes")
	history   = flag.Int("history", 100_000, "finished jobs in the database with a past")
	nodes     = flag.Int("nodes", 3, "nodes of 8 simulated GPUs, each with a daemon")
	binary    = flag.String("binary", "bin/forewarm-node", "the daemon of nodes")
	withSlurm = flag.String("with-slurm", "scripts/with-slurm", "starts Slurm's daemons; empty: no Slurm")
	folder    = flag.String("dir", "/var/tmp", "where daemons keep what they know")
	parts     = flag.String("parts", "rate,starts,history", "what is measured")
)

// patience is how long all jobs of a run may take.
const patience = 10 * time.Minute

func main() { rig.Main("16", runBenchmark) }

func runBenchmark(ctx context.Context, out io.Writer, o rig.Options) error {
	if wanted("rate") || wanted("starts") {
		if err := measureJobs(ctx, out, o); err != nil {
			return err
		}
	}
	if !wanted("history") {
		return nil
	}
	return measureHistory(ctx, out, o)
}

// measureJobs runs jobs on nodes with daemons.
func measureJobs(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	s, err := openSite(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if wanted("starts") {
		if err := s.measureStarts(ctx, out); err != nil {
			return err
		}
	}
	if !wanted("rate") {
		return nil
	}
	return s.measureRates(ctx, out, o)
}

// measureRates runs many jobs here and in Slurm, in turn.
func (s *site) measureRates(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	var slurm *cluster
	if *withSlurm != "" {
		if slurm, err = startCluster(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, slurm.stop()) }()
	}
	for _, connections := range o.Connections {
		ours, theirs := rig.Series{}, rig.Series{}
		for range o.Count {
			perSecond, err := s.measureRate(ctx, connections)
			if err != nil {
				return err
			}
			ours = append(ours, perSecond)
			if slurm == nil {
				continue
			}
			if perSecond, err = slurm.measureRate(ctx, connections); err != nil {
				return err
			}
			theirs = append(theirs, perSecond)
		}
		name := suffixOf(connections, o)
		ours.Print(out, "jobs_per_s"+name, "1/s")
		if slurm != nil {
			theirs.Print(out, "jobs_slurm_per_s"+name, "1/s")
			ours.Over(theirs).Print(out, "jobs_of_slurm"+name, "ratio")
		}
	}
	return nil
}

// suffixOf names the number of connections where there are several.
func suffixOf(connections int, o rig.Options) string {
	if len(o.Connections) == 1 {
		return ""
	}
	return fmt.Sprintf("_%d", connections)
}
