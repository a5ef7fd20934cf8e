package agent_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
)

func TestAFailingControlPlaneLeavesTheAgentUsable(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.playRush(t)
	b.control.fails = errors.New("no route to host")
	rep, err := b.Step(t.Context())
	require.ErrorIs(t, err, b.control.fails)
	require.False(t, rep.Sent)
	require.NotEmpty(t, rep.Plan.Windows)

	b.control.fails = nil
	b.clock.Advance(time.Minute)
	b.handleItems(t, jobItem("new", b.clock.Now(), 1))
	rep, err = b.Step(t.Context())
	require.NoError(t, err)
	require.True(t, rep.Sent)
	require.NotEmpty(t, b.control.plans[0].Windows)
}

func TestForecastsAndOutcomesReachTheControlPlane(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := predict.OpenLedger(filepath.Join(dir, "forecasts.jsonl"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Release()) }()
	start := func(c *agent.Config) {
		c.Ledger, c.Secret, c.State = l, []byte("secret"), filepath.Join(dir, "state.json")
	}
	b := newBench(t, start)
	b.playRush(t)
	b.control.deaf = errors.New("away")
	rep, err := b.Step(t.Context())
	require.NoError(t, err, "the plan stands although nobody hears of forecasts")
	require.True(t, rep.Sent)
	require.Equal(t, 1, rep.Unsent)

	again := newBench(t, start) // a restart
	begun := today.Add(inRush)
	again.clock.Set(begun.Add(30 * time.Second))
	_, err = again.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, again.control.forecasts, 1)
	f := again.control.forecasts[0]
	require.Equal(t, poolID, f.PoolID)
	require.Equal(t, begun, f.Start)
	require.Equal(t, contract.ReasonRecentRate, f.ReasonCode)
	require.Greater(t, f.Probability, 0.1)

	running := func(id string, at time.Time) source.Item {
		j := jobItem(id, at, 3)
		j.Record.State = history.Running
		return j
	}
	again.clock.Set(begun.Add(time.Minute))
	again.handleItems(t, running("one more", again.clock.Now()), running("and another", again.clock.Now()))
	for _, after := range []time.Duration{10 * time.Minute, 12 * time.Minute} {
		again.clock.Set(begun.Add(after))
		_, err = again.Step(t.Context())
		require.NoError(t, err)
	}
	require.Len(t, again.control.outcomes, 1)
	require.Equal(t, contract.AgentOutcome{ID: f.ID, GPUs: 6, CountedAt: begun.Add(10 * time.Minute)},
		again.control.outcomes[0])
}

func TestWithoutASecretNoForecastLeaves(t *testing.T) {
	t.Parallel()
	l, err := predict.OpenLedger(filepath.Join(t.TempDir(), "forecasts.jsonl"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Release()) }()
	b := newBench(t, func(c *agent.Config) { c.Ledger = l })
	b.playRush(t)
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	require.Positive(t, l.Summary().Open)
	require.Empty(t, b.control.forecasts)
}
