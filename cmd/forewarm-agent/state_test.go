package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two configurations that share a state folder: what one has learned is no plan of the other, which
// reads something else.
func TestAStateOfOtherSourcesIsRefused(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	w.useSource("{kind: jobs, path: " + w.pathOf("other.csv") + ", format: csv}")
	for _, there := range []bool{false, true} {
		if there {
			require.NoError(t, os.WriteFile(w.pathOf("other.csv"),
				[]byte("job_id,gpus,submit_ts,duration_s\nx-1,1,1772400000,60\n"), 0o600))
		}
		for _, how := range []string{"--dry-run", "--once"} {
			out, errs, code := w.runCommand(t.Context(), "run", how)
			require.Equal(t, exitUsage, code, errs)
			require.Contains(t, errs, "holds what was learned from "+w.pathOf("jobs.csv"))
			require.Contains(t, errs, "delete "+w.pathOf("state"))
			require.Empty(t, out)
		}
	}
	w.useSource("{kind: jobs, path: " + w.pathOf("jobs.csv") + ", format: csv}, {kind: jobs, path: " +
		w.pathOf("other.csv") +
		", format: csv}")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, "one more source goes on: %s", errs)
	w.useSource("{kind: jobs, path: " + w.pathOf("other.csv") + ", format: csv}")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, "and so does the newer one alone: %s", errs)
}

// A dry run is to find out what is missing, whatever was learned before.
func TestADryRunNeedsItsHistory(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.useSource("{kind: jobs, path: " + w.pathOf("jobs.csv") + ", format: csv}")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.NoError(t, os.Remove(w.pathOf("jobs.csv")))
	out, errs, code := w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "there is no file "+w.pathOf("jobs.csv"))
	require.Empty(t, out)
}

func TestInitReplacesOnlyWhatItLeftUnfinished(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	w := newHome(t)
	require.NoError(t, os.Rename(w.pathOf("jobs.csv"), w.pathOf("mine.csv")))
	read := func() string {
		data, err := os.ReadFile(w.pathOf("agent.yaml"))
		require.NoError(t, err)
		return string(data)
	}
	start := func(wants int, args ...string) {
		t.Helper()
		_, errs, code := w.runCommand(t.Context(), append([]string{"init"}, args...)...)
		require.Equal(t, wants, code, errs)
		if wants == exitUsage {
			require.Contains(t, errs, "--force")
		}
	}
	start(exitOK)
	start(exitUsage)
	require.Contains(t, read(), missingMark)
	start(exitOK, "--history", w.pathOf("mine.csv"))
	require.NotContains(t, read(), missingMark)
	start(exitUsage, "--history", w.pathOf("mine.csv"))
	start(exitOK, "--history", w.pathOf("mine.csv"), "--force", "--pool", "lab")
	require.Contains(t, read(), `pool: "lab"`)

	require.NoError(t, os.Remove(w.pathOf("agent.yaml")))
	start(exitOK)
	changed := strings.Replace(read(), "every: 1m", "every: 2m", 1)
	require.NoError(t, os.WriteFile(w.pathOf("agent.yaml"), []byte(changed), 0o600))
	start(exitUsage, "--history", w.pathOf("mine.csv"))
	require.Contains(t, read(), "every: 2m")
}

// Configurations that init writes have states of their own.
func TestInitGivesEachConfigurationItsState(t *testing.T) {
	t.Parallel()
	getenv := func(string) string { return "/home/ada" }
	one, two := ownStateDir(getenv, "/a/forewarm-agent.yaml"), ownStateDir(getenv, "/b/forewarm-agent.yaml")
	require.NotEqual(t, one, two)
	require.Equal(t, one, ownStateDir(getenv, "/a/forewarm-agent.yaml"))
	require.Regexp(t, `^/home/ada/forewarm-agent/forewarm-agent-[0-9a-f]{8}$`, one)
}

func TestInitChecksTheEndpoint(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	for endpoint, says := range map[string]string{
		"foo": "must be like https://host", "ftp://x": "must be like https://host",
		"http://example.com": "must be https",
	} {
		_, errs, code := w.runCommand(t.Context(), "init", "--endpoint", endpoint)
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, "--endpoint "+endpoint+": "+says)
		require.NoFileExists(t, w.pathOf("agent.yaml"))
	}
}
