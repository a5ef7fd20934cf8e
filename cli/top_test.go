package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// joinDaemon has the daemon of the first node join as nodes join says, and report two GPUs.
func (w *town) joinDaemon(source string) {
	w.t.Helper()
	id := w.mustRun("nodes", "list", "--jq", ".[0].id")
	lines := w.mustRun("nodes", "join", id)
	require.Contains(w.t, lines, "forewarm-node run --url "+w.url+" --node "+id+" --token-file - <<'TOKEN'\nfw_node_")
	_, text, _ := strings.Cut(lines, "<<'TOKEN'\n")
	token, _, _ := strings.Cut(text, "\n")
	as := func(key string) *client.Client {
		c, err := client.New(w.url, key, http.DefaultClient)
		require.NoError(w.t, err)
		return c
	}
	joined, err := as(token).JoinNode(w.t.Context(), id, contract.NodeJoin{BootID: "boot"})
	require.NoError(w.t, err)
	b := contract.Heartbeat{Version: "1", BootID: "boot", Seq: 1, Look: contract.NodeLook{Source: source}}
	devices := strings.Fields(w.mustRun("gpus", "list", "--node", id, "-o", "name"))
	for i, busy := range []int{100, 0} {
		all, memory, heat, power := 81_920, 81_920*busy/100, 79, 700.5
		gpu, _, _ := strings.Cut(devices[i*len(devices)/4], "::")
		b.Look.GPUs = append(b.Look.GPUs, contract.LookGPU{UUID: gpu, Index: i, Model: "a100-80g", Health: "degraded",
			GPUTelemetry: contract.GPUTelemetry{Utilization: &busy, MemoryUsedMiB: &memory, MemoryMiB: &all, Temperature: &heat,
				Power: &power}})
	}
	_, err = as(joined.Key).PutHeartbeat(w.t.Context(), id, b)
	require.NoError(w.t, err)
}

func TestTop(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "1", "--price", "12.80", "--simulated")
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--name", "a-long-name-of-a-person", "--for", "2h", "--wait")
	require.Contains(t, w.mustRun("nodes", "list", "-o", "wide"), "none")
	w.joinDaemon("simulated")
	out := w.mustRun("top", "--once")
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	require.Regexp(t, `^1 node, 4 GPUs\n4× SIM a100-80g: 2 held, idling costs \$9\.60 an hour\n`+
		`   mean use 50% of 2 that report, 80\.0G of 160\.0G used, 140[12] W\n`, out)
	require.Regexp(t, `(?m) SIM 0 +100% +80\.0G +79C +70[01] +degraded +a-long-nam +(1h5\dm|2h) +-$`, out)
	require.Regexp(t, `(?m) SIM 1 +0% .* \$3\.20$`, out, "it is held, and does nothing")
	require.Regexp(t, `(?m) SIM 2 +- +- +- +- +healthy +- +- +\$3\.20$`, out, "nobody holds it, and nothing reports it")

	looks := 0
	ctx, stop := context.WithCancel(t.Context())
	w.onPause = func() {
		if looks++; looks == 2 {
			stop()
		}
	}
	stream, _, _ := w.runWithContext(ctx, "top", "-o", "jsonl")
	require.Equal(t, 8, strings.Count(stream, "\n"), stream)
	require.Equal(t, 4, strings.Count(stream, `"utilization_percent"`), stream)
	_, _, code := w.runCommand("top", "-o", "json")
	require.Equal(t, exit.Usage, code)
	w.terminal, w.stdin = true, "q"
	w.onPause = nil
	_, _, code = w.runCommand("top")
	require.Zero(t, code, "q ends it")

	w.clock.Advance(2 * time.Minute)
	silent := w.mustRun("top", "--once")
	require.Regexp(t, `(?m) SIM 0 +- +- +- +- +unknown +a-long-nam `, silent, "nobody knows what it does now")
	require.NotContains(t, silent, "that report")
}

// What a GPU does counts once, however many shares of it there are.
func TestTopOfSharedGPUs(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "8", "--shares-per-gpu", "2", "--memory", "40", "--max-nodes", "1", "--price", "12.80",
		"--simulated")
	w.mustRun("allocate", "--gpus", "1", "--pool", "lab", "--name", "mine", "--for", "2h", "--wait")
	require.Regexp(t, `(?m)^lab SIM +a100-80g +8 \(4×2\) +40GiB `, w.mustRun("pools", "list"))
	w.joinDaemon("simulated")
	out := w.mustRun("top", "--once")
	require.Regexp(t, `mean use 50% of 2 that report, 80\.0G of 160\.0G used`, out)
	require.Regexp(t, `(?m) SIM 0::0 +100% .* mine `, out)
	require.Regexp(t, `(?m) SIM 0::1 +100% .* - +- +\$1\.60$`, out)
}

// Keys sort what is shown, and an outage of the control plane ends nothing.
func TestTopSortsAndIsPatient(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "1", "--price", "12.80", "--simulated")
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--name", "all", "--for", "2h", "--wait")
	w.joinDaemon("simulated")
	away := false
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		w.server.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w.env["FOREWARM_API"] = front.URL
	keys, typist := io.Pipe()
	pauses := 0
	ctx, stop := context.WithCancel(t.Context())
	w.onPause = func() {
		switch pauses++; pauses {
		case 1:
			for _, key := range "i," { // who reads the second has heeded the first
				_, err := typist.Write([]byte{byte(key)})
				require.NoError(t, err)
			}
		case 2:
			away = true
		case 3:
			away = false
		case 4:
			stop()
		}
	}
	w.terminal = true
	root := w.newRoot()
	root.SetArgs([]string{"top"})
	root.SetIn(keys)
	var shown, errs strings.Builder
	root.SetOut(&shown)
	root.SetErr(&errs)
	require.Equal(t, exit.Interrupt, Execute(ctx, root))
	require.Contains(t, errs.String(), "; it is looked at again")
	looks := strings.Split(shown.String(), "\x1b[H\x1b[2J")
	require.Len(t, looks, 4)
	require.Regexp(t, `(?s) SIM 0 .* SIM 1 `, looks[1])
	require.Regexp(t, `(?s) SIM 1 .* SIM 0 `, looks[2], "what does nothing costs most")
}

// A terminal hands q on without Enter, and is afterwards as it was.
func TestTopAtATerminal(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.terminal = true
	keyboard, tty, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(keyboard.Close(), tty.Close())) })
	mode := func() unix.Termios {
		m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		require.NoError(t, err)
		return *m
	}
	before, typed := mode(), false
	w.onPause = func() {
		if !typed {
			typed = true
			require.NotEqual(t, before, mode())
			_, err := keyboard.WriteString("q")
			require.NoError(t, err)
		}
	}
	root := w.newRoot()
	root.SetArgs([]string{"top"})
	root.SetIn(tty)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	require.Zero(t, Execute(t.Context(), root))
	require.Equal(t, before, mode())
}

// A node that is being removed is not among those that can be used.
func TestTopLeavesOutWhatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--name", "short", "--wait")
	require.Contains(t, w.mustRun("top", "--once"), "1 node, 4 GPUs\n")
	id := w.mustRun("nodes", "list", "--jq", ".[0].id")
	w.mustRun("nodes", "drain", id)
	require.Contains(t, w.mustRun("top", "--once"), "1 node, 4 GPUs\n", "somebody holds them")
	w.mustRun("release", "short")
	require.Regexp(t, `draining|deprovisioning`, w.mustRun("nodes", "list", "--jq", ".[].state"))
	require.Equal(t, "0 nodes, 0 GPUs", w.mustRun("top", "--once"))
	w.createTower()
	w.mustRun("allocate", "--gpus", "1", "--pool", "tower", "--wait")
	require.Contains(t, w.mustRun("top", "--once"), "1 node, 2 GPUs\n2× SIM GPU: 1 held",
		"its name says that it is simulated")
}
