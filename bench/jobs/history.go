package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/bench/rig"
)

// side is one of two databases, with its server: one is new, one has finished jobs.
type side struct {
	name         string
	installation *rig.Installation
	server       *rig.Process
	p50          rig.Series // of a submission, in milliseconds
}

// measureHistory submits in turn to a database that is new and to one with finished jobs.
func measureHistory(ctx context.Context, out io.Writer, o rig.Options) (err error) {
	var both []*side
	defer func() {
		for _, s := range both {
			err = errors.Join(err, s.stop(ctx))
		}
	}()
	for name, past := range map[string]int{"new": 0, "old": *history} {
		s, err := openSide(ctx, o, name, past)
		if err != nil {
			return err
		}
		both = append(both, s)
	}
	for run := range o.Count {
		for _, at := range [][]int{{0, 1, 1, 0}, {1, 0, 0, 1}}[run%2] { // whatever grows or slows, does it to both
			if err := both[at].measure(ctx, out, o); err != nil {
				return fmt.Errorf("%s: %w", both[at].name, err)
			}
		}
	}
	fresh, old := both[0], both[1]
	if fresh.name == "old" {
		fresh, old = old, fresh
	}
	fresh.p50.Print(out, "submit_job_new_p50_ms", "ms")
	old.p50.Print(out, "submit_job_old_p50_ms", "ms")
	old.p50.Over(fresh.p50).Print(out, "submit_growth_history", "ratio")
	return nil
}

func openSide(ctx context.Context, o rig.Options, name string, past int) (s *side, err error) {
	s = &side{name: name}
	if s.installation, err = rig.Install(ctx, o.Postgres, time.Minute); err != nil {
		return nil, err
	}
	nodeIDs, err := s.installation.AddNodes(ctx, 1)
	if err == nil {
		err = s.addPast(ctx, past, nodeIDs[0])
	}
	if err == nil {
		s.server, err = rig.Start(ctx, rig.Ours, s.installation, "")
	}
	if err != nil {
		return nil, errors.Join(err, s.installation.Drop(ctx))
	}
	return s, nil
}

func (s *side) stop(ctx context.Context) error {
	return errors.Join(s.server.Stop(), s.installation.Drop(ctx))
}

// measure submits for a while over one connection, and takes what waits out of the queue again, so
// that each measurement begins with an empty one.
func (s *side) measure(ctx context.Context, out io.Writer, o rig.Options) error {
	fleet := rig.Fleet{Servers: []*rig.Process{s.server}}
	r, err := rig.Loop(ctx, o, 1, fleet, s.installation.Key.Reveal(), http.StatusCreated,
		func(int, int) (string, string, []byte) { return "/v1/jobs", "application/json", jobBody })
	if err != nil {
		return err
	}
	ids, err := rig.IDs(r.All())
	if err != nil {
		return err
	}
	took := r.Latencies()
	if len(took) == 0 { // a moment in which not even one was answered is as long as what was
		took = rig.Result{Counted: r.All()}.Latencies()
	}
	s.p50 = append(s.p50, rig.Quantile(took, 0.5))
	fmt.Fprintf(out, "%s: %d jobs, p50 %.2f ms, p99 %.2f ms\n", s.name, len(ids), rig.Quantile(took, 0.5),
		rig.Quantile(took, 0.99))
	if err := s.installation.Verify(ctx, ids, submittedRows); err != nil {
		return err
	}
	return s.exec(ctx, "UPDATE jobs SET state = 'cancelled', ended_at = submitted_at WHERE state = 'pending'")
}

func (s *side) exec(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.installation.URL)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	for _, statement := range statements {
		if _, failed := conn.Exec(ctx, statement); failed != nil && err == nil {
			err = fmt.Errorf("%.60s: %w", statement, failed)
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

// addPast writes finished jobs as they would lie in the tables, with their attempts, allocations and
// events. It ends with what a database at work has done long ago.
func (s *side) addPast(ctx context.Context, n int, nodeID string) error {
	work := fmt.Sprintf(`WITH work AS (SELECT i, %d + i * 100000::bigint AS at, '%s' AS org, '%s' AS key,
		(SELECT id FROM pools WHERE name = '%s') AS pool, '%s' AS node,
		'job_05' || lpad(i::text, 12, '0') || substr(md5('j' || i), 1, 12) AS job,
		'alc_05' || lpad(i::text, 12, '0') || substr(md5('a' || i), 1, 12) AS allocation
		FROM generate_series(1, %d) AS i) `, time.Now().Add(-time.Duration(n)*100*time.Millisecond-time.Hour).UnixMicro(),
		s.installation.Actor.OrganizationID, s.installation.Actor.KeyID, rig.PoolName, nodeID, n)
	return s.exec(ctx, work+pastJobs, work+pastRanks, work+pastAllocations, work+pastHolds, work+pastEvents,
		"VACUUM (ANALYZE)", "CHECKPOINT")
}

const (
	pastJobs = `INSERT INTO jobs (id, version, organization_id, pool_id, name, submitted_by, user_id, priority, nodes,
			per_node, short, spec, input, array_id, array_index, not_before, attempt, allocation_id, failures, losses, reason,
			attempt_end, gpu_time, cost, state, submitted_at, scheduled_at, started_at, ended_at)
		SELECT job, 4, org, pool, '', key, '', 'normal', 1, 1, 0,
			'{"arguments":["true"],"max_runtime":60000000000,"grace":30000000000}', '', '', 0, 0, 1, allocation, 0, 0, '',
			'{"Code":"","ExitCode":0,"Signal":"","Reason":"","Ran":true}', 60000000, 40000, 'completed', at, at + 10000,
			at + 50000, at + 60000
		FROM work ORDER BY i`
	pastRanks = `INSERT INTO job_ranks (job_id, attempt, rank, node_id, state, attempt_end)
		SELECT job, 1, 0, node, 'ended', '{"Code":"","ExitCode":0,"Signal":"","Reason":"","Ran":true}' FROM work ORDER BY i`
	pastAllocations = `INSERT INTO allocations
		SELECT allocation, org, pool, '', key, '', 'batch', 1, 1, 0, '[0]', '[]', 60000000, at + 10000, at + 70000,
			'job_over', 'released', at + 10000, at + 10000, at + 60000, at + 60000, 40000, 4, job
		FROM work ORDER BY i`
	pastHolds = `INSERT INTO allocation_gpus
		SELECT allocation, node, 'GPU-SIM-' || node || '-' || i % 8, i % 8, at + 10000, at + 60000 FROM work ORDER BY i`
	pastEvents = `INSERT INTO events (organization_id, at, type, subject, pool_id, actor, via, reason, message, decision)
		SELECT org, work.at + e.after, e.type, CASE e.of WHEN 'job' THEN job ELSE allocation END, pool, 'system', 'scheduler',
			'', e.message, ''
		FROM work CROSS JOIN (VALUES ('job', 0, 'job.submitted', '1 GPU'), ('job', 10000, 'job.scheduled', 'on 1 GPU'),
			('alc', 10000, 'allocation.active', '1 GPU in bench'), ('job', 20000, 'job.ordered', 'to be started on 1 node'),
			('job', 50000, 'job.running', ''), ('job', 60000, 'job.completed', ''),
			('alc', 60000, 'allocation.released', 'its job is over')) AS e (of, after, type, message)
		ORDER BY work.at + e.after`
)
