package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// startAgent composes the agent of the configuration and has it read what there is; step takes a step of it.
func (w *home) startAgent() (step func(), log *bytes.Buffer) {
	w.t.Helper()
	cfg, f, err := loadConfig(w.pathOf("agent.yaml"), func(string) string { return w.dir })
	require.NoError(w.t, err)
	log = &bytes.Buffer{}
	p := composer{cfg: cfg, file: f, clock: w.clock, logger: slog.New(slog.NewTextHandler(log, nil))}
	all, err := p.composeAgent(w.t.Context())
	w.t.Cleanup(func() { require.NoError(w.t, all.close()) })
	require.NoError(w.t, err)
	require.NoError(w.t, p.readAll(w.t.Context(), all))
	return func() {
		w.t.Helper()
		_, err := all.agent.Step(w.t.Context())
		require.NoError(w.t, err)
	}, log
}

// Another plan with the agent's key cancels what the agent placed: it says so, once in some minutes. What its own plans
// give up, and what its owner cancels, is nobody else's doing.
func TestAnotherAgentWithTheSameKeyIsTold(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig())
	step, log := w.startAgent()
	rival, err := client.New(w.url, w.key, http.DefaultClient)
	require.NoError(t, err)
	const warning = "another agent writes plans with this key"
	step()
	placed := w.listReserved()
	require.NotEmpty(t, placed)
	for _, r := range placed {
		_, err := w.client.CancelReservation(context.WithoutCancel(t.Context()), r.ID)
		require.NoError(t, err)
	}
	w.clock.Advance(61 * time.Second)
	step()
	require.NotContains(t, log.String(), warning, "their owner cancelled them")
	for range 3 {
		_, err = rival.SetDemand(t.Context(), contract.AgentPlan{PoolID: placed[0].PoolID,
			Windows: []contract.AgentWindow{}})
		require.NoError(t, err)
		w.clock.Advance(61 * time.Second)
		step()
	}
	require.Equal(t, 1, strings.Count(log.String(), warning), log.String())
}
