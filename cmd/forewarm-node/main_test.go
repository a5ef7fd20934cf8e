package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

const (
	examples = "../../deploy/forewarm-node.example.yaml"
	unit     = "../../deploy/systemd/forewarm-node.service"
)

// command runs a command line, and returns its exit code and what it wrote.
func command(ctx context.Context, stdin string, env map[string]string, args ...string) (int, string) {
	var out bytes.Buffer
	root := newRoot(outside{clock: clock.System{}, uptime: machineUptime,
		getenv: func(name string) string { return env[name] }})
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&out)
	return executeCommand(ctx, root), out.String()
}

func TestLook(t *testing.T) {
	t.Parallel()
	code, out := command(t.Context(), "", nil, "look", "--simulate", "2")
	require.Zero(t, code, out)
	require.Contains(t, out, "SIM: no figure is real")
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(line), 80, line)
	}
	code, out = command(t.Context(), "", map[string]string{"FOREWARM_NODE_SIMULATE": "3"}, "look", "-o", "json")
	require.Zero(t, code, out)
	var look contract.NodeLook
	require.NoError(t, json.Unmarshal([]byte(out), &look))
	require.Len(t, look.GPUs, 3)
	require.Equal(t, "healthy", look.GPUs[0].Health)
}

// A key does not leave the machine in the clear unless somebody says that it may.
func TestPlainHTTPStaysHere(t *testing.T) {
	t.Parallel()
	for address, leaves := range map[string]bool{
		"http://forewarm.example.com": true, "http://10.0.0.1:8787": true, "http://localhost.example.com": true,
		"https://forewarm.example.com": false, "http://localhost:8787": false, "http://127.0.0.1:8787": false,
		"http://[::1]:8787": false,
	} {
		c := defaultConfig()
		c.URL = address
		require.Equal(t, leaves, c.check() != nil, address)
		c.PlainHTTP = true
		require.NoError(t, c.check(), address)
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(open, []byte("x"), 0o644)) //nolint:gosec // what must be refused
	for want, args := range map[string][]string{
		"simulate: must be 0 to 64":                   {"look", "--simulate", "65"},
		`source: "hearsay"`:                           {"look", "--source", "hearsay"},
		"--output":                                    {"look", "--simulate", "1", "-o", "xml"},
		"look_every: 500ms: must be 1s to 30s":        {"run", "--look-every", "500ms"},
		"report_every: 31s: must be 5s to 30s":        {"run", "--report-every", "31s"},
		"must not be less than look_every (20s)":      {"run", "--look-every", "20s", "--report-every", "10s"},
		"is no address of metrics":                    {"look", "--dcgm-exporter", "127.0.0.1:9400"},
		"neither of this machine nor of a private":    {"look", "--dcgm-exporter", "http://8.8.8.8/metrics"},
		"is for a dcgm_exporter, and there is none":   {"look", "--dcgm-anywhere"},
		"tells of real GPUs, and simulate has others": {"look", "--simulate", "1", "--dcgm-exporter", "http://127.0.0.1/"},
		"--url and --node":                            {"run", "--node", "nod_1"},
		`settings: "forget"`:                          {"run", "--settings", "forget"},
		`metadata: "some"`:                            {"run", "--metadata", "some"},
		"chmod 600": {"run", "--node", "n", "--url", "https://x", "--token-file", open, "--state-dir",
			t.TempDir()},
		"want fd: and a number": {"run", "--node", "n", "--url", "https://x", "--token-file", "fd:x", "--state-dir",
			t.TempDir()},
		"unknown flag: --token": {"run", "--token", "secret"},
		"unknown command":       {"reset"},
		"forewarm nodes join n makes one": {"run", "--node", "n", "--url", "https://x", "--simulate", "1", "--state-dir",
			t.TempDir() + "/s"},
	} {
		for i, a := range args { // a test's folder is open to its group
			if i > 0 && args[i-1] == "--state-dir" {
				require.NoError(t, os.MkdirAll(a, 0o700))
				require.NoError(t, os.Chmod(a, 0o700)) //nolint:gosec // a folder
			}
		}
		code, out := command(t.Context(), "", nil, args...)
		require.NotZero(t, code, args)
		require.Contains(t, out, want, args)
	}
}

// The example file loads, with every key, and its decisions are known ones.
func TestTheExampleLoads(t *testing.T) {
	t.Parallel()
	root := newRoot(outside{clock: clock.System{}, uptime: machineUptime, getenv: func(string) string { return "" }})
	run, _, err := root.Find([]string{"run"})
	require.NoError(t, err)
	c, err := loadConfig(examples, func(string) string { return "" }, run.Flags())
	require.NoError(t, err)
	require.Equal(t, "/etc/forewarm/join-token", c.TokenFile)
	require.Len(t, c.XIDs, 1)
	require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second}, []time.Duration{c.LookEvery, c.ReportEvery})
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("url: x\nsimulat: 3\n"), 0o600))
	_, err = loadConfig(wrong, func(string) string { return "" }, run.Flags())
	require.ErrorContains(t, err, "simulat")
}

// The unit starts a command that there is, and does not start again what is refused.
func TestTheUnitFits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	line, _, found := strings.Cut(strings.SplitAfter(string(text), "ExecStart=")[1], "\n")
	require.True(t, found)
	words := strings.Fields(line)
	require.Equal(t, "forewarm-node", filepath.Base(words[0]))
	root := newRoot(outside{clock: clock.System{}, uptime: machineUptime, getenv: func(string) string { return "" }})
	cmd, rest, err := root.Find(words[1:])
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags(rest))
	require.Equal(t, "run", cmd.Name())
	require.Contains(t, string(text), "RestartPreventExitStatus=2 4\n")
	require.Equal(t, []int{2, 4}, []int{exitUsage, exitRefused})
	require.Contains(t, string(text), "StateDirectory=forewarm-node forewarm-node-holds\nStateDirectoryMode=0700\n")
	require.Contains(t, string(text), "KillMode=process\nSendSIGKILL=no\n", "runners of jobs go on")
	require.Contains(t, string(text), "PrivateTmp=no\nReadWritePaths=/tmp /var/tmp\n", "and keep their files")
	require.Equal(t, "/var/lib/forewarm-node", defaultConfig().StateDir)
}

// The drop-in for containers takes back what the unit forbids, and nothing that the unit does not know.
func TestTheDropInFitsTheUnit(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(unit)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(unit), "forewarm-node-containers.conf"))
	require.NoError(t, err)
	loosened := 0
	for line := range strings.Lines(string(text)) {
		key, _, setting := strings.Cut(line, "=")
		if line[0] == '#' || !setting {
			continue
		}
		require.Contains(t, string(whole), "\n"+key+"=", "it was forbidden")
		require.NotContains(t, string(whole), "\n"+line, "it changes something")
		loosened++
	}
	require.GreaterOrEqual(t, loosened, 9)
}

// plane is a control plane that lets one daemon join.
type plane struct {
	mu    sync.Mutex
	beats []contract.Heartbeat
	came  chan struct{}
	gone  bool
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case p.gone:
		problem := contract.NewProblem(contract.CodeDaemonRefused, "The node is over.")
		w.WriteHeader(problem.Status)
		_ = json.NewEncoder(w).Encode(problem)
	case strings.HasSuffix(r.URL.Path, "/heartbeat"):
		var b contract.Heartbeat
		_ = json.NewDecoder(r.Body).Decode(&b)
		p.beats = append(p.beats, b)
		_ = json.NewEncoder(w).Encode(contract.HeartbeatAnswer{HeartbeatSeconds: 1})
		select {
		case p.came <- struct{}{}:
		default:
		}
	default:
		_ = json.NewEncoder(w).Encode(contract.NodeJoined{NodeID: strings.Split(r.URL.Path, "/")[3], Key: "key",
			ExpiresInSeconds: 60, HeartbeatSeconds: 1})
	}
}

// It joins with a token from standard input, reports, and ends when it is told to, with
// code 0; when it is refused, with the code that keeps systemd from starting it again.
func TestRunUntilToldToStop(t *testing.T) {
	t.Parallel()
	p := &plane{came: make(chan struct{}, 1)}
	server := httptest.NewServer(p)
	defer server.Close()
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"run", "--url", server.URL, "--node", "nod_1", "--simulate", "2", "--state-dir", state}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended, said := make(chan int, 1), ""
	go func() {
		var code int
		code, said = command(ctx, "the token\n", nil, append(args, "--token-file", "-")...)
		ended <- code
	}()
	<-p.came
	stop()
	require.Zero(t, <-ended)
	require.Contains(t, said, "source=simulated", "it says where its figures come from")
	p.mu.Lock()
	require.NotEmpty(t, p.beats[0].BootID)
	require.Positive(t, p.beats[0].Epoch)
	require.Len(t, p.beats[0].Look.GPUs, 2)
	p.gone = true
	p.mu.Unlock()
	code, out := command(t.Context(), "", nil, args...)
	require.Equal(t, exitRefused, code, out)
	require.Contains(t, out, "forewarm nodes join")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
