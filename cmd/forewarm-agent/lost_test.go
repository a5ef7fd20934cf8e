package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// Without what was learned, the checkpoint is worth nothing: the history is read again, and the log says why.
func TestALostStateIsLearnedAgain(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	const warning = "what was learned is gone"
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.NotContains(t, errs, warning)
	_, errs, _ = w.runCommand(t.Context(), "run", "--once")
	require.Contains(t, errs, "jobs.csv: 0 new rows")
	require.NoError(t, os.Remove(w.pathOf("state/state.json")))
	for _, how := range []string{"--dry-run", "--once"} {
		_, errs, code = w.runCommand(t.Context(), "run", how)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, errs, warning)
		require.Contains(t, errs, w.pathOf("state"))
		require.Contains(t, errs, "jobs.csv: 504 new rows")
	}
	_, errs, _ = w.runCommand(t.Context(), "run", "--once")
	require.NotContains(t, errs, warning)
	require.Contains(t, errs, "jobs.csv: 0 new rows")
}

// A new salt in the place of one that was used is told.
func TestALostSaltIsTold(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	const warning = "the salt is missing or damaged"
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.NotContains(t, errs, warning)
	require.NoError(t, os.WriteFile(w.pathOf("state/salt"), nil, 0o600))
	_, errs, _ = w.runCommand(t.Context(), "run", "--once")
	require.Contains(t, errs, warning)
	require.NoError(t, os.Remove(w.pathOf("state/salt")))
	_, errs, _ = w.runCommand(t.Context(), "run", "--once")
	require.Contains(t, errs, warning)
	_, errs, _ = w.runCommand(t.Context(), "run", "--once")
	require.NotContains(t, errs, warning)
}

// A dry run counts on the boots that the agent would count on, says so, and refuses what run refuses.
func TestADryRunCountsOnTheBootsOfTheAgent(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig())
	_, errs, code := w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "assumes that a boot takes 5m: no boot of the pool is known yet")
	_, err := w.client.CreatePool(t.Context(), contract.PoolCreate{Name: "fast", Provisioner: "sim", Model: "a100",
		GPUsPerNode: 4, GPUMemoryMiB: 81920, PricePerNodeHour: contract.Money{Amount: "8.40", Currency: "USD"},
		MaxNodes: 2, Simulated: true, BootP50Seconds: 8, BootP95Seconds: 8})
	require.NoError(t, err)
	text, err := os.ReadFile(w.pathOf("agent.yaml"))
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("pool: lab"), []byte("pool: fast"), 1)
	require.NoError(t, os.WriteFile(w.pathOf("agent.yaml"), text, 0o600))
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	_, errs, code = w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "assumes that a boot takes 8s: the pool's did when it was last asked")

	w.writeConfig(w.autoConfig() + "llm: {base_url: 'http://example.com/v1', model: m}\n")
	for _, how := range []string{"--dry-run", "--once"} {
		_, errs, code = w.runCommand(t.Context(), "run", how)
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, "llm.base_url: must be https unless")
	}
}

// A tenant that the history does not know is told, with those that it knows; the agent goes on.
func TestAnUnknownTenantIsTold(t *testing.T) {
	t.Parallel()
	for tenant, says := range map[string][]string{
		"nlp": {"", ""},
		"npl": {"no job of tenant npl was seen, so nothing is learned: the rows that were read are of nlp",
			"no job of tenant npl was seen, so nothing is learned: no other"},
	} {
		w := newHome(t)
		w.writeConfig("tenant: " + tenant + "\n")
		for _, want := range says {
			_, errs, code := w.runCommand(t.Context(), "run", "--once")
			require.Equal(t, exitOK, code, errs)
			require.Contains(t, errs, want)
			require.Equal(t, want != "", strings.Contains(errs, "nothing is learned"))
		}
	}
}
