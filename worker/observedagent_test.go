package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	jobs "github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// clusterAgent is a customer's agent beside a cluster: it learns from the cluster's jobs,
// and asks for warm nodes with a key of its own. No model helps it.
type clusterAgent struct {
	*agent.Agent
	world *clusterWorld
	actor ledger.Actor
	mark  provisioners.Mark
	outbox.Receiver
}

// The agent's jobs: whole nodes, twice an hour, for ten minutes.
const (
	jobEvery  = 30 * time.Minute
	jobAt     = 5 * time.Minute
	jobLength = 10 * time.Minute
)

func newClusterAgent(t *testing.T, w *clusterWorld) *clusterAgent {
	t.Helper()
	a := &clusterAgent{world: w, actor: w.actor}
	a.actor.KeyID, a.actor.Kind = "agent", ledger.AgentKey
	a.actor.Caps = quota.Caps{MaxGPUs: 8, MaxPerDay: 1000 * money.USD, MaxLead: 24 * time.Hour, MaxWindow: 4 * time.Hour}
	predictor, err := predict.New(predict.Config{MaxGPUs: 8,
		Terms: evidence.Terms{WaitPrice: 500, GPUPrice: 1, Boot: 2 * time.Minute}}, nil)
	require.NoError(t, err)
	scrub, err := redact.New(redact.Config{})
	require.NoError(t, err)
	scores, err := predict.OpenLedger(filepath.Join(t.TempDir(), "forecasts.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scores.Release()) })
	a.Agent, err = agent.New(agent.Config{PoolID: w.pool.ID, Mode: agent.Auto, Clock: w.clock,
		Logger: slog.New(slog.DiscardHandler), Predict: predictor, Scrub: scrub, Control: a, Ledger: scores,
		Place: place.Config{WaitWorth: 500, Boot: 2 * time.Minute, MaxGPUs: 8}})
	require.NoError(t, err)
	a.learnPast(t)
	return a
}

// learnPast has it read three weeks of the jobs that come.
func (a *clusterAgent) learnPast(t *testing.T) {
	t.Helper()
	now := a.world.clock.Now()
	var past []source.Item
	for at := now.AddDate(0, 0, -21).Truncate(jobEvery).Add(jobAt); at.Before(now); at = at.Add(jobEvery) {
		past = append(past, source.Item{Record: &jobs.Record{ID: fmt.Sprint("past-", at.Unix()), Submitted: at,
			Started: at, Ended: at.Add(jobLength), Duration: jobLength, GPUs: 8, State: jobs.Completed}})
	}
	require.NoError(t, a.Handle(t.Context(), past))
}

// SetDemand is what a server does with the plan.
func (a *clusterAgent) SetDemand(ctx context.Context, plan contract.AgentPlan) (contract.PlanOutcome, error) {
	want := ledger.Demand{Pool: plan.PoolID}
	for _, w := range plan.Windows {
		want.Windows = append(want.Windows, ledger.DemandWindow{Start: w.Start, End: w.End, GPUs: w.GPUs,
			Probability: w.Probability, ReasonCode: w.ReasonCode})
	}
	outcomes, err := a.world.ledger.SetDemand(ctx, a.actor, want)
	var out contract.PlanOutcome
	for _, o := range outcomes {
		out.Windows = append(out.Windows, contract.WindowOutcome{Kept: o.Kept, Placed: o.Placed,
			ReservationIDs: o.Reservations})
	}
	return out, err
}

// look reads the cluster's queue, as a job history shows it, and places.
func (a *clusterAgent) look(t *testing.T) agent.Report {
	t.Helper()
	seen, err := a.world.cluster.Observe(t.Context(), a.mark)
	require.NoError(t, err)
	a.mark = seen.Mark
	var news []source.Item
	for _, w := range seen.Work {
		r := jobs.Record{ID: w.ID, Submitted: w.SubmittedAt, Started: w.StartedAt, Ended: w.EndedAt, GPUs: w.GPUs,
			State: jobs.Running}
		if !w.EndedAt.IsZero() {
			r.State = jobs.Completed
		}
		news = append(news, source.Item{Record: &r})
	}
	require.NoError(t, a.Handle(t.Context(), news))
	report, err := a.Step(t.Context())
	require.NoError(t, err)
	return report
}

// The whole way: the agent learns from the cluster's jobs, reserves a node ahead of the
// next, the node is warmed, a job whose user has never heard of Forewarm begins on
// it at once and claims the reservation, and both scores tell of it.
func TestTheAgentWarmsAnObservedPool(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	config := clusterConfig()
	config.Seed = 9
	config.Work = []simcluster.Work{{Job: simcluster.Job{Name: "train", Account: "vision", Length: jobLength},
		Every: jobEvery, At: jobAt}}
	var err error
	w.cluster, err = simcluster.New(config, w.clock)
	require.NoError(t, err)
	w.startWorker(parts{cloud: w.cluster})
	require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold))
	a := newClusterAgent(t, w)
	require.True(t, a.look(t).Sent, "what comes by the clock is not held before its time")

	began := w.clock.Now()
	var last agent.Report
	for w.clock.Now().Before(began.Add(4 * time.Hour)) {
		w.driveFor(time.Minute)
		last = a.look(t)
	}
	started := w.starts(w.actor.OrganizationID)
	require.Len(t, started, 8)
	claims := 0
	for _, job := range started {
		wait, began := job.Wait()
		require.True(t, began)
		if len(job.Reservations) == 0 {
			continue
		}
		claims++
		require.Zero(t, wait)
		require.Len(t, job.Devices, 8)
		promise := readFrom(w.world, func(r ledger.Reader) (reservation.Reservation, error) {
			return r.Reservation(ledger.Scope{All: true}, job.Reservations[0])
		})
		require.Equal(t, reservation.FromAgent, promise.Origin)
		require.Equal(t, reservation.Speculative, promise.Class)
		require.Equal(t, a.actor.KeyID, promise.MadeBy)
		require.True(t, promise.CreatedAt.Before(job.RequestedAt), "it was placed ahead of need")
		require.Equal(t, reservation.Claimed, promise.State())
	}
	require.Equal(t, len(started), claims)
	w.requireScoreSince(began, len(started), claims)
	require.Positive(t, last.Scores.Statistics.N, "the agent has scored what it forecast")
	require.Zero(t, last.Late)
}

// requireScoreSince checks the starts from a time on, and how many of them did not wait.
func (w *clusterWorld) requireScoreSince(from time.Time, starts, zeroWaits int) {
	w.t.Helper()
	report := readFrom(w.world, func(r ledger.Reader) (ledger.Report, error) {
		return r.Report(ledger.Scope{All: true}, from, w.clock.Now().Add(time.Hour))
	})
	require.Equal(w.t, []int{starts, zeroWaits}, []int{report.Starts, report.ZeroWaits})
}
