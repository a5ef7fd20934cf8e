package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// TestFromHistoryToReservation runs the whole agent against a whole control
// plane, with a model: what it learned becomes reservations, a second step keeps
// them, and nothing but numbers and codes has left.
func TestFromHistoryToReservation(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig() + "llm: {base_url: '" + w.llm + "', model: scripted-sim, max_calls_per_day: 5}\n")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "by statistics; hold ")
	require.Contains(t, errs, "refused 0")
	placed := w.listReserved()
	require.NotEmpty(t, placed)
	for _, r := range placed {
		require.Equal(t, "speculative", r.Class)
		require.Equal(t, "agent", r.Origin)
		require.Contains(t, contract.ReasonCodes, r.ReasonCode)
	}

	w.appendFile("train.log", "will sweep 8 GPUs at ten, password=hunter2hunter2\n")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "refused 0")
	require.Positive(t, w.model.Calls())
	before, reserved := 0, w.listReserved()
	for _, r := range placed {
		before += r.GPUs
	}
	for _, r := range reserved {
		if r.Start.Equal(w.clock.Now()) {
			before -= r.GPUs
		}
	}
	require.Zero(t, before, "what the model says of later changes nothing of what is held now")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "placed 0, kept")
	require.Equal(t, reserved, w.listReserved())

	out, errs, code := w.runCommand(t.Context(), "egress", "verify")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "ok: ")
	w.privateFiles()
}

// appendFile appends to a file of the customer's.
func (w *home) appendFile(name, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.pathOf(name), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	_, err = f.WriteString(text)
	require.NoError(w.t, err)
	require.NoError(w.t, f.Close())
}

// privateFiles checks that others can read nothing and that no file of the
// agent's holds a name or a line of the customer's.
func (w *home) privateFiles() {
	w.t.Helper()
	files, err := os.ReadDir(w.pathOf("state"))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, files)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(w.t, err)
		require.Zero(w.t, info.Mode().Perm()&0o077, f.Name())
		data, err := os.ReadFile(w.pathOf("state/" + f.Name()))
		require.NoError(w.t, err)
		for _, private := range []string{"hunter2", "sweep", "job-17", w.key} {
			require.NotContains(w.t, string(data), private, f.Name())
		}
	}
}

// An agent that starts in the middle of a window still gets the rest of it, and
// keeps it at later steps.
func TestWindowsThatHaveBegunArePlacedFromNow(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig())
	w.clock.Advance(time.Minute) // a job of the history comes five minutes after each hour
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "refused 0")
	placed := w.listReserved()
	require.NotEmpty(t, placed)
	require.True(t, slices.ContainsFunc(placed,
		func(r contract.Reservation) bool { return r.Start.Equal(w.clock.Now()) }))
	w.clock.Advance(2 * time.Minute)
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	t.Logf("%+v\n%+v", placed, w.listReserved())
	require.Contains(t, errs, "placed 0, kept")
	require.Equal(t, idsOf(placed), idsOf(w.listReserved()))
}

func idsOf(all []contract.Reservation) (ids []string) {
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	return ids
}

// A broken row costs a line in the log that names it, and nothing else.
func TestBrokenRowsAreToldByLine(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.appendFile("jobs.csv", "job-x,ada,nlp,-4,1,1,completed\n")
	w.writeConfig("")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs,
		"rows that cannot be read: 1 of 505; the rest counts; the latest: line 506: submit_ts must be")
	require.Contains(t, errs, "504 new rows")
}

// Only the named tenant's jobs count.
func TestTenantChoosesTheRows(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]bool{"nlp": true, "vision": false} {
		w := newHome(t)
		w.writeConfig(w.autoConfig() + "tenant: " + tenant + "\n")
		_, errs, code := w.runCommand(t.Context(), "run", "--once")
		require.Equal(t, exitOK, code, errs)
		require.Equal(t, want, len(w.listReserved()) > 0, tenant)
	}
}

func TestObserveSendsNothing(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("api: {endpoint: '" + w.url + "'}\n")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "not sent")
	require.Empty(t, w.listReserved())
	log, err := os.ReadFile(w.pathOf("state/egress.jsonl"))
	require.NoError(t, err)
	require.Empty(t, log)
	out, errs, code := w.runCommand(t.Context(), "egress", "verify")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "ok: 0 entries: nothing was sent yet")
}

// Before the first run there is nothing to verify, and nothing wrong.
func TestNothingSentVerifies(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	out, errs, code := w.runCommand(t.Context(), "egress", "verify")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "ok: 0 entries: nothing was sent yet")
}

// A dry run of an agent that would place prints the plan, sends nothing, and
// leaves what was learned as it was.
func TestDryRunSendsAndKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig() + "llm: {base_url: '" + w.llm + "', model: scripted-sim}\n")
	out, errs, code := w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, exitOK, code, errs)
	var plan contract.AgentPlan
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	require.NotEmpty(t, plan.Windows)
	require.Empty(t, w.listReserved())
	require.Zero(t, w.model.Calls())
	_, err := os.Stat(w.pathOf("state"))
	require.ErrorIs(t, err, os.ErrNotExist)
	again, _, _ := w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, out, again)
}

// signalling is a log that ends the run once a line was written to it.
type signalling struct {
	bytes.Buffer
	line string
	then func()
}

func (s *signalling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.line) {
		s.then()
	}
	return s.Buffer.Write(p)
}

func TestRunEndsGracefully(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig(w.autoConfig())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	root := newRoot(outside{clock: w.clock, getenv: func(string) string { return w.dir }})
	root.SetArgs([]string{"run", "--config", w.pathOf("agent.yaml")})
	root.SetErr(&signalling{line: "placed ", then: cancel})
	require.Equal(t, exitOK, executeCommand(ctx, root))
	require.NotEmpty(t, w.listReserved())
	_, errs, code := w.runCommand(t.Context(), "run", "--once") // the locks are free again
	require.Equal(t, exitOK, code, errs)
}

// A control plane that is away costs a line in the log; what was promised stays.
func TestRunGoesOnWithoutTheControlPlane(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	pool, err := w.client.Pool(t.Context(), "lab")
	require.NoError(t, err)
	w.writeConfig(strings.Replace(w.autoConfig(), w.url, "http://127.0.0.1:1", 1))
	text, err := os.ReadFile(w.pathOf("agent.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.pathOf("agent.yaml"),
		bytes.Replace(text, []byte("pool: lab"), []byte("pool: "+pool.ID), 1), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	root := newRoot(outside{clock: w.clock, getenv: func(string) string { return w.dir }})
	root.SetArgs([]string{"run", "--config", w.pathOf("agent.yaml")})
	errs := &signalling{line: "the step failed and is tried again", then: cancel}
	root.SetErr(errs)
	require.Equal(t, exitOK, executeCommand(ctx, root))
	require.Contains(t, errs.String(), "check that api.endpoint is reachable")
}

// The version is asked for as of any program, and as of forewarm.
func TestVersion(t *testing.T) {
	t.Parallel()
	say := func(arg string) string {
		var out bytes.Buffer
		root := newRoot(outside{})
		root.SetArgs([]string{arg})
		root.SetOut(&out)
		require.Equal(t, exitOK, executeCommand(t.Context(), root))
		return out.String()
	}
	asFlag := say("--version")
	require.Equal(t, say("version"), asFlag)
	require.Contains(t, asFlag, "forewarm-agent ")
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*home)
		args    []string
		code    int
		says    string
	}{
		"unknown command":      {nil, []string{"rum", "--"}, exitUsage, "unknown command"},
		"an argument too many": {nil, []string{"run", "extra"}, exitUsage, `"extra" is one argument too many`},
		"no such history": {nil, []string{"init", "--history", "nowhere.csv"}, exitUsage,
			"nowhere.csv: there is no such file"},
		"unknown flag": {nil, []string{"run", "--twice"}, exitUsage, "unknown flag"},
		"log level":    {nil, []string{"run", "--log-level", "loud"}, exitUsage, "level"},
		"no file":      {nil, []string{"run"}, exitUsage, "fix: forewarm-agent init"},
		"unknown key": {func(w *home) { w.writeConfig("mod: auto\n") }, []string{"run"}, exitUsage,
			"agent.yaml:1: there is no key mod\n  fix: write mode"},
		"wrong key": {func(w *home) {
			w.writeConfig("mode: auto\napi: {endpoint: '" + w.url + "', key: fw_nonsense}\n")
		}, []string{"run", "--once"}, exitLogin, "API key"},
		"wrong pool": {func(w *home) {
			w.writeConfig(w.autoConfig())
			data, _ := os.ReadFile(w.pathOf("agent.yaml"))
			_ = os.WriteFile(w.pathOf("agent.yaml"), bytes.Replace(data, []byte("pool: lab"), []byte("pool: lob"), 1),
				0o600)
		}, []string{"run", "--once"}, exitNotFound, "lob"},
		"plain HTTP far away": {func(w *home) { w.writeConfig("api: {endpoint: 'http://fw.example.com'}\n") },
			[]string{"run", "--once"}, exitUsage, "agent.yaml:1: api.endpoint: must be https"},
		"log cut at its end": {func(w *home) {
			w.writeConfig(w.autoConfig())
			_, _, _ = w.runCommand(w.t.Context(), "run", "--once")
			_ = os.Truncate(w.pathOf("state/egress.jsonl"), 0)
		}, []string{"egress", "verify"}, exitFailed, "entries were written"},
		"no such log": {func(w *home) { w.writeConfig("") }, []string{"egress", "verify", "--log", "nowhere.jsonl"},
			exitUsage, "nowhere.jsonl: no such file"},
		"changed log": {func(w *home) {
			w.writeConfig(w.autoConfig())
			_, _, _ = w.runCommand(w.t.Context(), "run", "--once")
			data, _ := os.ReadFile(w.pathOf("state/egress.jsonl"))
			_ = os.WriteFile(w.pathOf("state/egress.jsonl"), bytes.Replace(data, []byte("PUT"), []byte("GET"), 1),
				0o600)
		}, []string{"egress", "verify"}, exitFailed, "egress.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHome(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			_, errs, code := w.runCommand(t.Context(), c.args...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.says)
			require.Contains(t, errs, "\nNext:  forewarm-agent")
		})
	}
}

func TestInit(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	_, errs, code := w.runCommand(t.Context(), "init", "--history", w.pathOf("jobs.csv"), "--pool", "lab",
		"--endpoint", w.url)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "504 GPU jobs (csv), rows that cannot be read: 0")
	require.Contains(t, errs, "Next:  forewarm-agent run --dry-run")
	info, err := os.Stat(w.pathOf("agent.yaml"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Empty(t, w.listReserved())

	_, errs, code = w.runCommand(t.Context(), "run", "--dry-run") // what it wrote works
	require.Equal(t, exitOK, code, errs)
	_, errs, code = w.runCommand(t.Context(), "init", "--history", w.pathOf("jobs.csv"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "is left as it is")
}

// Everything that the template shows switched off can be switched on as it
// stands.
func TestInitTemplateIsAllTrue(t *testing.T) {
	t.Setenv("FOREWARM_AGENT_KEY", "k")
	t.Setenv("OPENAI_API_KEY", "k")
	f := found{endpoint: "http://127.0.0.1:8787", stateDir: "/s", history: "/h/jobs.csv", format: "csv", missing: true}
	text := strings.ReplaceAll(f.configText(), "\n  # ", "\n  ")
	lines := strings.Split(text, "\n")
	for i, l := range lines[2:] {
		lines[i+2] = strings.TrimPrefix(l, "# ")
	}
	c, _, err := loadConfig(writeConfig(t, strings.Join(lines, "\n")), nothingSet)
	require.NoError(t, err, strings.Join(lines, "\n"))
	require.Len(t, c.Sources, 2)
	require.NotNil(t, c.LLM)
	require.Equal(t, 24*time.Hour, c.Forecast.Horizon.Std())
}
