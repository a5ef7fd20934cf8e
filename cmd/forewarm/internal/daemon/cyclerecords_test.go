package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/ringfile"
)

// recorderIn is a recorder in a folder, with its log, and how many records it has kept and lost.
func recorderIn(t *testing.T, folder string) (c *cycleRecorder, log *bytes.Buffer, counts func() string) {
	t.Helper()
	registry := obs.NewRegistry()
	metrics, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	log = &bytes.Buffer{}
	a := &app{cfg: Config{CycleRecords: CycleRecords{Folder: folder, KeepMiB: 1}}, metrics: metrics,
		clock: clock.NewManual(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)), log: slog.New(slog.NewTextHandler(log, nil))}
	return newCycleRecorder(a), log, func() string {
		families, err := registry.Gather()
		require.NoError(t, err)
		out := ""
		for _, f := range families {
			if f.GetName() == "forewarm_cycle_records_total" {
				for _, m := range f.GetMetric() {
					out += fmt.Sprintf("%s %v ", m.GetLabel()[0].GetValue(), m.GetCounter().GetValue())
				}
			}
		}
		return out
	}
}

// lookAt is a look that starts a job, or has it wait.
func lookAt(job string, starts bool) scheduler.Record {
	d := scheduler.Decision{}
	if starts {
		d.Starts = []scheduler.Start{{Job: job}}
	} else {
		p := scheduler.Promise{Promised: placement.Promised{ID: job}}
		d.Promised = []scheduler.Promise{p}
	}
	return scheduler.Record{Version: scheduler.RecordVersion, Pool: "lab",
		Rounds: []scheduler.Round{{Decision: d}}}
}

func TestCyclesAreKept(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "cycles")
	c, _, counts := recorderIn(t, folder)
	c.RecordCycles(t.Context(), lookAt("a", true))
	c.RecordCycles(t.Context(), lookAt("a", true))
	c.RecordCycles(t.Context(), lookAt("b", false))
	c.RecordCycles(t.Context(), lookAt("b", false)) // everybody waits as before
	require.NoError(t, c.finish(t.Context()))
	require.Equal(t, "kept 3 lost 0 ", counts())
	files, err := filepath.Glob(filepath.Join(folder, "cycles-*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	n := 0
	for text, err := range ringfile.Read(files[0]) {
		require.NoError(t, err)
		_, err = scheduler.DecodeRecord(text)
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n)
}

// A disk that takes nothing costs records, of which the metric and the log tell, and nothing else.
func TestADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c, log, counts := recorderIn(t, filepath.Join(file, "below"))
	for range mostUnwritten + 3 { // nobody writes meanwhile
		c.RecordCycles(t.Context(), lookAt("a", true))
	}
	require.Equal(t, "kept 0 lost 3 ", counts())
	require.NoError(t, c.finish(t.Context()))
	require.Equal(t, fmt.Sprintf("kept 0 lost %d ", mostUnwritten+3), counts())
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("could not be recorded")), "once a minute")
}

func TestNoCyclesAreKeptByDefault(t *testing.T) {
	t.Parallel()
	c, _, _ := recorderIn(t, "")
	require.Nil(t, c)
	require.NoError(t, c.finish(t.Context()))
	require.Equal(t, "no cycles", c.String())
}
