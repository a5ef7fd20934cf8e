package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/caps"
	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// TestExitCodes reaches every exit code, and finds a command to run next behind
// every failure.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    int
		prepare func(*town)
		args    string
		says    string
	}{
		"ok": {exit.OK, nil, "status", ""},
		"unreachable": {exit.Failed, func(w *town) { w.env["FOREWARM_API"] = "http://127.0.0.1:1" }, "status",
			"no server answers at http://127.0.0.1:1"},
		"usage":     {exit.Usage, nil, "allocate", "--gpus is missing"},
		"bad value": {exit.Usage, (*town).createPool, "allocate --gpus -1 --pool lab", "gpus"},
		"contradiction": {exit.Usage, nil, "users caps ann --none --max-gpus 3",
			"--none and --max-gpus cannot be given together"},
		"bad URL": {exit.Usage, nil, "status --server nowhere", "URL"},
		"no key":  {exit.Login, func(w *town) { w.env["FOREWARM_API_KEY"] = "" }, "pools list", "API key"},
		"wrong key": {exit.Login, func(w *town) { w.env["FOREWARM_API_KEY"] = "fw_nonsense" }, "pools list",
			"API key"},
		"not found": {exit.NotFound, nil, "allocations show alc_00000000000000000000000000",
			"There is no allocation \"alc_00000000000000000000000000\""},
		"conflict": {exit.Conflict, (*town).createPool,
			"pools create lab --provisioner sim --model a100 --gpus-per-node 4 --memory 80 --max-nodes 2 --price 1",
			"taken"},
		"quota": {exit.Policy, func(w *town) {
			w.createPool()
			w.mustRun("allocate", "--gpus", "4", "--pool", "lab")
			w.mustRun("quota", "set", w.ownOrganization(), "--max-gpus", "6")
		}, "allocate --gpus 4 --pool lab", "quota"},
		"role": {exit.Policy, func(w *town) {
			w.mustRun("key", "create", "guest", "--role", "viewer", "--out", w.env["XDG_CONFIG_HOME"]+".key")
			w.env["FOREWARM_API_KEY"], w.env["FOREWARM_API_KEY_FILE"] = "", w.env["XDG_CONFIG_HOME"]+".key"
		}, "org create beta --max-gpus 1", "may not"},
		"no capacity": {exit.NoCapacity, func(w *town) {
			w.createPool()
			w.mustRun("quota", "set", w.ownOrganization(), "--max-gpus", "100")
			w.mustRun("allocate", "--gpus", "8", "--pool", "lab")
		}, "allocate --gpus 4 --pool lab", "capacity"},
		"wait timed out": {exit.Timeout, (*town).createPool, "allocate --gpus 4 --pool lab --wait --timeout 3s",
			"forewarm wait alc_"},
		"waited failed": {exit.WaitFailed, func(w *town) {
			w.createPool()
			w.onPause = func() { w.onPause = nil; w.mustRun("release", w.mustRun("allocations", "list", "-o", "name")) }
		}, "allocate --gpus 4 --pool lab --wait", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			_, errs, code := w.runCommand(strings.Fields(c.args)...)
			require.Equal(t, c.code, code, errs)
			if c.code != exit.OK {
				require.Contains(t, errs, c.says)
				require.Contains(t, errs, "\nNext:  forewarm ")
			}
		})
	}
}

// Who may not is told who may, and nothing of quotas.
func TestRolesAreTold(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	key := w.env["XDG_CONFIG_HOME"] + ".key"
	w.mustRun("key", "create", "guest", "--role", "viewer", "--out", key)
	w.env["FOREWARM_API_KEY"], w.env["FOREWARM_API_KEY_FILE"] = "", key
	for args, who := range map[string]string{
		"nodes drain nod_1": "the role operator; this key has the role viewer.\n  Ask an operator of " +
			"the installation",
		"prewarm pause": "the role admin; this key has the role viewer.\n  Ask an admin of your " +
			"organization",
		"allocate --gpus 1 --pool lab": "the role member; this key has the role viewer.\n  Ask a member or an " +
			"admin of your organization",
	} {
		_, errs, code := w.runCommand(strings.Fields(args)...)
		require.Equal(t, exit.Policy, code, errs)
		require.Contains(t, errs, who, args)
		require.True(t, strings.HasSuffix(errs, "\nNext:  forewarm whoami\n"), errs)
	}
}

// Things are counted as people write them.
func TestCounts(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"0 GPUs", "1 GPU", "2 GPUs"},
		[]string{format.Count(0, "GPU"), format.Count(1, "GPU"), format.Count(int64(2), "GPU")})
	require.Equal(t, "1 GPU, $1.00 a day, 1h ahead, 1h long, 1 GPU-hour a day", caps.Text(&contract.Caps{
		MaxGPUs: 1, MaxPerDay: flags.ParseDollars("1"), MaxLeadSeconds: 3600, MaxWindowSeconds: 3600,
		GPUHoursPerDay: new(int64(1)),
	}))
}

// ownOrganization is the id of the caller's organization.
func (w *town) ownOrganization() string { return w.mustRun("org", "show", "-o", "name") }

func TestInterruptedWaitSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	ctx, cancel := context.WithCancel(t.Context())
	w.onPause = cancel
	_, errs, code := w.runWithContext(ctx, "allocate", "--gpus", "4", "--pool", "lab", "--wait")
	require.Equal(t, exit.Interrupt, code)
	id := w.mustRun("allocations", "list", "-o", "name")
	require.Contains(t, errs, "Next:  forewarm wait "+id)
	w.onPause = nil
	require.Contains(t, w.mustRun("wait", id, "-o", "json"), `"state": "active"`)
}

// A reservation is waited for until its GPUs are warm.
func TestWaitForAReservation(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	id := w.mustRun("reserve", "--gpus", "2", "--pool", "lab", "--at", "in 10m", "--for", "1h", "-o", "name")
	require.Contains(t, w.mustRun("wait", id, "-o", "json"), `"state": "ready"`)
	_, errs, code := w.runCommand("wait", "rsv_00000000000000000000000000")
	require.Equal(t, exit.NotFound, code, errs)
}

// A key is saved for its owner alone, and goes to no server but its own.
func TestSavedKeyStaysWithItsServer(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("login")
	path, err := contextfile.Path(func(n string) string { return w.env[n] })
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	delete(w.env, "FOREWARM_API_KEY")
	delete(w.env, "FOREWARM_API")
	require.Contains(t, w.mustRun("status"), w.url)

	seen := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		seen <- r.Header.Get("Authorization")
	}))
	t.Cleanup(other.Close)
	_, _, _ = w.runCommand("api", "GET", "/v1/whoami", "--server", other.URL)
	require.Empty(t, <-seen)
}

// A redirect is not followed, and no empty list either.
func TestRedirectFails(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	other := httptest.NewServer(http.RedirectHandler("https://elsewhere.example/v1", http.StatusTemporaryRedirect))
	t.Cleanup(other.Close)
	for _, line := range [][]string{{"pools", "list"}, {"api", "GET", "/v1/pools"}} {
		_, errs, code := w.runCommand(append(line, "--server", other.URL)...)
		require.Equal(t, exit.Failed, code, line)
		require.Contains(t, errs, "answered 307 and points to https://elsewhere.example,", line)
	}
}

func TestLoginRefusesAWrongKey(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.env["FOREWARM_API_KEY"] = ""
	w.stdin = "fw_nonsense\n"
	_, _, code := w.runCommand("login", "--key-file", "-")
	require.Equal(t, exit.Login, code)
	_, err := os.Stat(filepath.Join(w.env["XDG_CONFIG_HOME"], "forewarm"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDamagedContextsNameTheLine(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	require.NoError(t, contextfile.Write(filepath.Join(w.env["XDG_CONFIG_HOME"], "forewarm", "contexts.yaml"),
		contextfile.File{}))
	path := filepath.Join(w.env["XDG_CONFIG_HOME"], "forewarm", "contexts.yaml")
	require.NoError(t, os.WriteFile(path, []byte("curent: a\n"), 0o600))
	_, errs, code := w.runCommand("status")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "contexts.yaml:1: there is no key curent\n  fix: write current")
}

func TestConfirmation(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.terminal = true
	id := w.mustRun("key", "create", "ci", "-o", "name")
	w.stdin = "n\n"
	_, errs, code := w.runCommand("key", "revoke", id)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "Revoke key "+id+"? [y/N] ")
	require.Contains(t, w.mustRun("key", "list", "-o", "jsonl"), id)
	w.stdin = "yes\n"
	require.Regexp(t, `ENDED +2026-`, w.mustRun("key", "revoke", id))
}

// TestRefusalsNameWhatThereIs is told by a pool of a provisioner that no worker
// has: the others are named, as the API names them.
func TestRefusalsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	offers := []ledger.Offer{{Region: "sim-1", Type: "a100-4", Model: "a100", GPUs: 4}}
	require.NoError(t, w.ledger.ReportOffers(t.Context(), "sim", offers))
	require.NoError(t, w.ledger.ReportOffers(t.Context(), "slurm-west", offers))
	line := "pools create lab --model a100 --region sim-1 --instance-type a100-4 --gpus-per-node 4 --memory 80 " +
		"--max-nodes 2 --price 1"
	_, errs, code := w.runCommand(append(strings.Fields(line), "--provisioner", "skynet")...)
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "Name one of these, or start a worker that has it: sim, slurm-west\n")
	w.mustRun(append(strings.Fields(line), "--provisioner", "sim")...)
}

// Nobody at a terminal is asked whether to delete what is not there.
func TestNoQuestionAboutASchedule(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.stdin, w.terminal = "y\n", true
	_, errs, code := w.runCommand("schedules", "delete", "nothing")
	require.Equal(t, exit.NotFound, code)
	require.NotContains(t, errs, "[y/N]")
}

// What a worker says is simulated is marked so, also by an operator who did not say it.
func TestAPoolOfASimulatedProvisionerIsMarked(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	real := ledger.Offer{Region: "sim-1", Type: "a100-4", Model: "a100", GPUs: 4}
	simulated := real
	simulated.Simulated = true
	require.NoError(t, w.ledger.ReportOffers(t.Context(), "sim", []ledger.Offer{simulated}))
	require.NoError(t, w.ledger.ReportOffers(t.Context(), "slurm-west", []ledger.Offer{real}))
	line := " --model a100 --region sim-1 --instance-type a100-4 --gpus-per-node 4 --memory 80 --max-nodes 2 --price 1"
	require.Contains(t, w.mustRun(strings.Fields("pools create lab --provisioner sim"+line)...), "lab SIM")
	require.NotContains(t, w.mustRun(strings.Fields("pools create west --provisioner slurm-west"+line)...), "SIM")
}
