package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// restartServer puts a server before the town's that can be away, as one is that
// starts again.
func (w *town) restartServer() (away *atomic.Bool) {
	away = &atomic.Bool{}
	real := w.server
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		real.ServeHTTP(out, r)
	}))
	w.t.Cleanup(s.Close)
	w.env["FOREWARM_API"] = s.URL
	return away
}

// A server that starts again while something is waited for is asked again.
func TestWaitSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	away := w.restartServer()
	pauses := 0
	w.onPause = func() {
		pauses++
		away.Store(pauses < 4)
		w.passTime(5 * time.Second)
	}
	out, errs, code := w.runCommand("allocate", "--gpus", "1", "--pool", "lab", "--wait", "-o", "json")
	require.Equal(t, exit.OK, code, errs)
	require.Contains(t, out, `"state": "active"`)
	require.Contains(t, errs, " was cut; trying again for up to 15m.\n")
	require.Greater(t, pauses, 4)
}

// What was waited for continues, and the message says so.
func TestWaitGivesUpOnAServerThatStaysAway(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	away := w.restartServer()
	id := w.mustRun("allocate", "--gpus", "1", "--pool", "lab", "-o", "name")
	away.Store(true)
	before := w.clock.Now()
	_, errs, code := w.runCommand("wait", id, "--timeout", "2m")
	require.Equal(t, exit.Timeout, code)
	require.Contains(t, errs, "and 2m has passed; "+id+" continues\nNext:  forewarm wait "+id+"\n")
	require.InDelta(t, 120, w.clock.Now().Sub(before).Seconds(), 15)
}

// With --wait a full pool is asked again until somebody gives GPUs back.
func TestAllocateWaitsForRoom(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("quota", "set", w.ownOrganization(), "--max-gpus", "100")
	held := w.mustRun("allocate", "--gpus", "8", "--pool", "lab", "--wait", "-o", "name")
	started := w.clock.Now()
	w.onPause = func() {
		w.passTime(5 * time.Second)
		if w.clock.Now().Sub(started) > time.Minute && held != "" {
			release := held
			held = ""
			w.mustRun("release", release)
		}
	}
	out, errs, code := w.runCommand("allocate", "--gpus", "4", "--pool", "lab", "--name", "six", "--wait", "--timeout",
		"10m", "-o", "json")
	require.Equal(t, exit.OK, code, errs)
	require.Contains(t, out, `"state": "active"`)
	require.Contains(t, errs,
		"No room now; asking again until 2026-03-02T08:10:21Z. This is not a place in a queue: forewarm reserve "+
			"--on-full queue gives one.\n")
	require.Contains(t, errs, "no room  pool lab has 0 GPUs free")
	var got contract.Allocation
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.InDelta(t, 65, *got.WaitSeconds, 6, "all the time that it was asked for is one wait")
	w.passTime(time.Second)
	report := w.mustRun("report", "-o", "json", "--jq", "[.starts, .zero_wait_starts]")
	require.JSONEq(t, "[2,0]", report)

	w.onPause = nil
	_, errs, code = w.runCommand("allocate", "--gpus", "8", "--pool", "lab", "--wait", "--timeout", "1m")
	require.Equal(t, exit.NoCapacity, code)
	require.Contains(t, errs, "Error: after 1m there is still no room: ")
	refusals := w.mustRun("events", "-o", "json", "--jq", `[.[] | select(.type == "allocation.refused")] | length`)
	require.Equal(t, "2", refusals, "questions leave no refusals")
}
