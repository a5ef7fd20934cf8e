package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

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
		memory, heat, power := 81_920*busy/100, 79, 700.5
		b.Look.GPUs = append(b.Look.GPUs, contract.LookGPU{UUID: devices[i], Index: i, Model: "a100-80g", Health: "degraded",
			GPUTelemetry: contract.GPUTelemetry{Utilization: &busy, MemoryUsedMiB: &memory, Temperature: &heat, Power: &power}})
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
	require.Contains(t, out, "1 node, 4 GPUs, 2 held\nmean use 50% of 2 that report, 140")
	require.Contains(t, out, "W, idling costs $9.60 an hour\n")
	require.Regexp(t, `(?m) 0 +100%SIM +80\.0G +79C +70[01] +degraded +a-long-nam +(1h5\dm|2h) +-$`, out)
	require.Regexp(t, `(?m) 1 +0%SIM .* \$3\.20$`, out, "it is held, and does nothing")
	require.Regexp(t, `(?m) 2 +- +- +- +- +healthy +- +- +\$3\.20$`, out, "nobody holds it, and nothing reports it")

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
	w.terminal, w.stdin = true, "q\n"
	w.onPause = nil
	_, _, code = w.runCommand("top")
	require.Zero(t, code, "q ends it")
}
