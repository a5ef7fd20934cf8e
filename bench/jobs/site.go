package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/bench/rig"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

func wanted(part string) bool {
	for one := range strings.SplitSeq(*parts, ",") {
		if one == part {
			return true
		}
	}
	return false
}

// site is a server, a worker with a simulated cloud, and the daemons of its nodes.
type site struct {
	installation *rig.Installation
	server       *rig.Process
	processes    []*rig.Process
	daemons      []*daemon
	db           *pgx.Conn
}

func openSite(ctx context.Context, o rig.Options) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.installation, err = rig.Install(ctx, o.Postgres, 100*time.Millisecond); err != nil {
		return s, err
	}
	if s.db, err = pgx.Connect(ctx, s.installation.URL); err != nil {
		return s, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	if s.server, err = rig.Start(ctx, rig.Ours, s.installation, o.CPUProfile); err != nil {
		return s, err
	}
	s.processes = append(s.processes, s.server)
	profile := o.CPUProfile
	if profile != "" {
		profile += ".worker"
	}
	worker, err := rig.Start(ctx, rig.Worker, s.installation, profile)
	if err != nil {
		return s, err
	}
	s.processes = append(s.processes, worker)
	return s, s.startDaemons(ctx)
}

// startDaemons has the pool keep nodes, and a daemon join for each, which has run a job afterwards.
func (s *site) startDaemons(ctx context.Context) error {
	api, err := client.New(s.server.URL, s.installation.Key.Reveal(), &http.Client{})
	if err != nil {
		return err
	}
	pool, err := api.Pool(ctx, rig.PoolName)
	if err != nil {
		return err
	}
	keep := contract.PoolPatch{MinNodes: nodes, MaxNodes: nodes}
	if _, err = api.PatchPool(ctx, pool.ID, pool.Version, keep); err != nil {
		return fmt.Errorf("having the pool keep nodes: %w", err)
	}
	var ready []string
	for len(ready) < *nodes {
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		ready = nil
		for n, err := range api.Nodes(ctx, client.Filter{Pool: rig.PoolName, State: []string{"ready"}}) {
			if err != nil {
				return fmt.Errorf("listing nodes: %w", err)
			}
			ready = append(ready, n.ID)
		}
	}
	for _, id := range ready {
		d, err := startDaemon(ctx, api, s.server.URL, id)
		if err != nil {
			return err
		}
		s.daemons = append(s.daemons, d)
	}
	_, err = s.run(ctx, *nodes*rig.PerNode, 1) // all GPUs once
	return err
}

func (s *site) close(ctx context.Context) error {
	var err error
	for _, d := range s.daemons {
		err = errors.Join(err, d.stop())
	}
	err = errors.Join(err, rig.StopAll(s.processes))
	if s.db != nil {
		err = errors.Join(err, s.db.Close(ctx))
	}
	if s.installation != nil {
		err = errors.Join(err, s.installation.Drop(ctx))
	}
	return err
}

// The questions that are asked of acknowledged jobs: each must have succeeded, and ended once.
const (
	completedRows   = "SELECT count(*) FROM jobs WHERE id = ANY($1) AND state = 'completed' AND attempt = 1"
	completedEvents = "SELECT count(*) FROM events WHERE subject = ANY($1) AND type = 'job.completed'"
	submittedRows   = "SELECT count(*) FROM jobs WHERE id = ANY($1)"
)

// jobBody asks for `true` on one GPU.
var jobBody = []byte(`{"pool":"` + rig.PoolName + `","gpus":1,"command":["true"],"max_runtime_seconds":60}`)

// submit submits jobs over connections that are kept alive, and returns the ids that were acknowledged.
func submit(ctx context.Context, url, key string, n, connections int) (ids []string, err error) {
	turns := make(chan int)
	var mu sync.Mutex
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			c := rig.NewConnection(url, key)
			defer c.Close()
			for range turns {
				answer, failed := c.Post(ctx, "/v1/jobs", "application/json", jobBody, http.StatusCreated)
				id := ""
				if failed == nil {
					id, failed = rig.ID(answer.Body)
				}
				mu.Lock()
				ids, err = append(ids, id), errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	group.Wait()
	return ids, err
}

// run submits jobs and waits until all have succeeded. It asks for the last one, and for the others once that is over:
// to count them all each time would cost the database as much as running them.
func (s *site) run(ctx context.Context, n, connections int) (ids []string, err error) {
	if ids, err = submit(ctx, s.server.URL, s.installation.Key.Reveal(), n, connections); err != nil {
		return nil, err
	}
	for until := time.Now().Add(patience); ; {
		if err := s.awaitOver(ctx, ids[len(ids)-1], until); err != nil {
			return nil, err
		}
		var over, completed int
		err := s.db.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE state = 'completed') FROM jobs "+
			"WHERE id = ANY($1) AND ended_at > 0", ids).Scan(&over, &completed)
		switch {
		case err != nil:
			return nil, fmt.Errorf("counting jobs that have ended: %w", err)
		case over > completed:
			return nil, fmt.Errorf("%d of %d jobs have not succeeded: %w", over-completed, n, s.whyFailed(ctx, ids))
		case completed == n:
			return ids, s.installation.Verify(ctx, ids, completedRows, completedEvents)
		case time.Now().After(until):
			return nil, fmt.Errorf("only %d of %d jobs have ended after %v", over, n, patience)
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// awaitOver waits until a job is over, or until a time.
func (s *site) awaitOver(ctx context.Context, id string, until time.Time) error {
	for time.Now().Before(until) {
		var over bool
		if err := s.db.QueryRow(ctx, "SELECT ended_at > 0 FROM jobs WHERE id = $1", id).Scan(&over); err != nil {
			return fmt.Errorf("asking for a job: %w", err)
		}
		if over {
			return nil
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// whyFailed tells how one of some jobs ended that has not succeeded.
func (s *site) whyFailed(ctx context.Context, ids []string) error {
	var why string
	err := s.db.QueryRow(ctx, "SELECT id || ' is ' || state || ' after ' || attempt || ' attempts: ' || attempt_end "+
		"FROM jobs WHERE id = ANY($1) AND ended_at > 0 AND state <> 'completed' LIMIT 1", ids).Scan(&why)
	return errors.Join(err, errors.New(why))
}

// measureRate returns how many jobs were run in a second, from the first submission to the last
// result.
func (s *site) measureRate(ctx context.Context, connections int) (perSecond float64, err error) {
	from := time.Now()
	ids, err := s.run(ctx, *jobs, connections)
	if err != nil {
		return 0, err
	}
	var last int64
	if err := s.db.QueryRow(ctx, "SELECT max(ended_at) FROM jobs WHERE id = ANY($1)", ids).Scan(&last); err != nil {
		return 0, fmt.Errorf("reading the last end: %w", err)
	}
	return float64(*jobs) / time.UnixMicro(last).Sub(from).Seconds(), nil
}

// measureStarts submits jobs to idle nodes, and reads from the database when they were submitted and when
// they ran.
func (s *site) measureStarts(ctx context.Context, out io.Writer) error {
	var took, given, ran []time.Duration
	for range *starts {
		ids, err := s.run(ctx, 1, 1)
		if err != nil {
			return err
		}
		var scheduled, started, ended int64 // microseconds after the submission
		if err := s.db.QueryRow(ctx, "SELECT scheduled_at - submitted_at, started_at - submitted_at, "+
			"ended_at - submitted_at FROM jobs WHERE id = $1", ids[0]).Scan(&scheduled, &started, &ended); err != nil {
			return fmt.Errorf("reading when a job began: %w", err)
		}
		given = append(given, time.Duration(scheduled)*time.Microsecond)
		took = append(took, time.Duration(started)*time.Microsecond)
		ran = append(ran, time.Duration(ended-started)*time.Microsecond)
	}
	fmt.Fprintf(out, "half of the jobs had their GPU after %.0f ms, ran %.0f ms later, and had ended %.0f ms after that\n",
		rig.Quantile(given, 0.5), rig.Quantile(took, 0.5)-rig.Quantile(given, 0.5), rig.Quantile(ran, 0.5))
	rig.Series{rig.Quantile(took, 0.5)}.Print(out, "job_start_p50_ms", "ms")
	rig.Series{rig.Quantile(took, 0.99)}.Print(out, "job_start_p99_ms", "ms")
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
