package report_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/watch"
)

// An operator reads in the log why a report did not arrive, and no words of the layers between.
func TestTheLogSaysWhyAReportDidNotArrive(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.server.broken = true
	state, err := report.OpenState(d.dir)
	require.NoError(t, err)
	var lines bytes.Buffer
	w := watch.New(&gpu.Simulated{Seed: "x", Count: 1, MemoryMiB: 1000}, nil, health.Policy{}, state.Health().For("boot"))
	r, err := report.New(report.Config{URL: "http://control.plane", NodeID: "nod_1", Token: obs.NewSecret("t"),
		Version: "1", BootID: "boot", Epoch: 7, HTTP: d.server, Log: slog.New(slog.NewTextHandler(&lines, nil))}, w, state)
	require.NoError(t, err)
	d.mustStep(r)
	require.Contains(t, lines.String(), `msg="the report did not reach the server" error="the connection to the control `+
		`plane was cut"`)
}
