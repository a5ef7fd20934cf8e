package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
)

// agentAt runs a command line in a world that has nothing but a folder.
func agentAt(t *testing.T, errs *bytes.Buffer, args ...string) (out string, code int) {
	t.Helper()
	root := newRoot(outside{clock: clock.NewManual(monday.AddDate(0, 2, 0)),
		getenv: func(string) string { return "" }})
	var stdout bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(errs)
	root.SetArgs(append([]string{"backtest"}, args...))
	code = executeCommand(t.Context(), root)
	return stdout.String(), code
}

// threeWeeks writes a history of a job every two hours, with a broken row, and
// returns its path.
func threeWeeks(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("job_id,group,submit_ts,start_ts,duration_s,gpus\n")
	for i := range 252 {
		at := monday.Add(time.Duration(2*i) * time.Hour).Unix()
		fmt.Fprintf(&b, "j%d,lab,%d,%d,600,2\n", i, at, at+240)
	}
	b.WriteString("broken,lab,soon,,600,2\n")
	path := filepath.Join(t.TempDir(), "jobs.csv")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

func TestBacktestNeedsAHistoryAndNothingElse(t *testing.T) {
	t.Parallel()
	path := threeWeeks(t)
	page := filepath.Join(filepath.Dir(path), "backtest.html")
	var errs bytes.Buffer
	out, code := agentAt(t, &errs, "--history", path, "--html", page, "--wait-price", "60", "--gpu-price", "2",
		"--frontier")
	require.Equal(t, exitOK, code, errs.String())
	for _, want := range []string{"what happened", "4m00s", "perfect foresight", "IDLE WASTE", "$60.00", "1 broken",
		"keep-alive"} {
		require.Contains(t, out, want)
	}
	require.Contains(t, errs.String(), "left out: line 254: submit_ts must be a number")
	require.Contains(t, errs.String(), "Report: "+page)
	for percent := 10; percent <= 100; percent += 10 {
		require.LessOrEqual(t, strings.Count(errs.String(), fmt.Sprintf("replaying: %d %%\n", percent)), 1,
			"a line for each tenth")
	}
	require.Contains(t, errs.String(), "replaying: 100 %\n")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(text, []byte("<!doctype html>")) && bytes.HasSuffix(text, []byte("</html>\n")))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 2, "the history and the report")

	asJSON, code := agentAt(t, &errs, "--history", path, "-o", "json", "--days", "14")
	require.Equal(t, exitOK, code)
	var report struct {
		History struct{ Jobs int }
	}
	require.NoError(t, json.Unmarshal([]byte(asJSON), &report))
	require.Equal(t, 14*12+1, report.History.Jobs)
}

func TestBacktestTakesWhatIsNotGivenFromAConfiguration(t *testing.T) {
	t.Parallel()
	path := threeWeeks(t)
	cfg := filepath.Join(filepath.Dir(path), "agent.yaml")
	state := filepath.Join(filepath.Dir(path), "state")
	require.NoError(t, os.WriteFile(cfg, fmt.Appendf(nil,
		"state_dir: %s\ntenant: lab\nsources:\n  - {kind: jobs, path: %s, format: csv}\nplace: {wait_worth: 7, "+
			"boot: 2m}\n", state, path), 0o600))
	var errs bytes.Buffer
	out, code := agentAt(t, &errs, "--config", cfg, "-o", "json", "--boot", "90s")
	require.Equal(t, exitOK, code, errs.String())
	var report struct {
		Settings struct {
			WaitWorth   float64 `json:"wait_worth"`
			BootSeconds int64   `json:"boot_seconds"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.InDelta(t, 7, report.Settings.WaitWorth, 0)
	require.EqualValues(t, 90, report.Settings.BootSeconds)
	require.NoDirExists(t, state, "it only reads")
}

func TestBacktestSaysWhatIsWrongWithTheCommandLine(t *testing.T) {
	t.Parallel()
	path := threeWeeks(t)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "sacct --parsable2", nil},
		{exitUsage, "--format parquet", []string{"--history", path, "--format", "parquet"}},
		{exitUsage, "--output yaml", []string{"--history", path, "-o", "yaml"}},
		{exitUsage, "give one of them", []string{"--history", path, "--wait-price", "60", "--wait-worth", "3",
			"--gpu-price", "2"}},
		{exitUsage, "needs --gpu-price", []string{"--history", path, "--wait-price", "60"}},
		{exitUsage, "above 0", []string{"--history", path, "--gpu-price", "-1"}},
		{exitUsage, "at least 1", []string{"--history", path, "--days", "0"}},
		{exitUsage, "waiting is worth", []string{"--history", path, "--wait-worth", "-1"}},
		{exitUsage, "a boot takes", []string{"--history", path, "--boot", "1ms"}},
		{exitUsage, "time zone", []string{"--history", path, "--zone", "Mars/Olympus"}},
		{exitUsage, "there is no folder", []string{"--history", path, "--html",
			filepath.Join(path, "nowhere", "x.html")}},
		{exitFailed, "opening the history", []string{"--history", path + ".not"}},
		{exitUsage, `no job of "nobody", but of lab`, []string{"--history", path, "--tenant", "nobody"}},
		{exitUsage, "--boot 5 is not a number with its unit, such as 90s, 5m or 1d; for minutes, write 5m",
			[]string{"--history", path, "--boot", "5"}},
		{exitUsage, "24h", []string{"--history", path, "--boot", "2d"}},
		{exitUsage, "--gpu-price abc is not a number, such as 2.10", []string{"--history", path, "--gpu-price", "abc"}},
		{exitUsage, "--days x is not a whole number", []string{"--history", path, "--days", "x"}},
		{exitFailed, "the header row has no column JobID, Submit", []string{"--history", path, "--format", "sacct"}},
	} {
		var errs bytes.Buffer
		out, code := agentAt(t, &errs, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, errs.String())
		require.Contains(t, errs.String(), c.says, "%v", c.args)
		require.Contains(t, errs.String(), "Next:", "%v", c.args)
		require.Empty(t, out)
	}
}

// stopAt cancels a context once a word is written.
type stopAt struct {
	bytes.Buffer
	word string
	stop context.CancelFunc
}

func (s *stopAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.word)) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

func TestBacktestThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	path := threeWeeks(t)
	ctx, stop := context.WithCancel(t.Context())
	errs := &stopAt{word: "replaying", stop: stop}
	root := newRoot(outside{clock: clock.NewManual(monday), getenv: func(string) string { return "" }})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(errs)
	root.SetArgs([]string{"backtest", "--history", path, "--html", filepath.Join(filepath.Dir(path), "b.html")})
	require.Equal(t, exitStopped, executeCommand(ctx, root))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "interrupted: nothing was written")
	require.NotContains(t, errs.String(), "90 %")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestProgressOnATerminalIsABar(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := &progress{out: &b, terminal: true}
	for _, share := range []float64{0, 0.004, 0.5, 0.5, 1, 2} {
		p.setShare(share)
	}
	p.wipeBar()
	require.Equal(t, 2, strings.Count(b.String(), "replaying"), "half, and all")
	require.Contains(t, b.String(), "▓░")
	require.True(t, strings.HasSuffix(b.String(), "\r\x1b[K"))
}
