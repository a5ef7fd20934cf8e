package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/auth"
)

// An unhealthy GPU takes its node out of use with the evidence, and an operator has it back.
func TestAnUnhealthyGPUIsQuarantined(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	require.Zero(t, f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy")).Clears)
	f.sendBeat("daemon", 0, f.beat(0, 1, 2, "unhealthy"))
	require.Equal(t, string(node.Quarantined), f.node(0).State)
	require.Equal(t, ledger.ReasonUnhealthyGPU, f.node(0).Reason)
	said := ask[contract.Explanation](f.world, "root", http.MethodGet, f.path(0, "explain"), "")
	require.Contains(t, said.Summary, "XID 79: it fell off the bus")
	require.Equal(t, "ready", f.node(1).State)

	ask[contract.Node](f.world, "root", http.MethodPost, f.path(0, "resume"), "")
	f.runDueTasks(contract.Pool{})
	require.Equal(t, "ready", f.node(0).State, "its provider proved it")
	f.clock.Advance(time.Minute)
	require.Equal(t, 1, f.sendBeat("daemon", 0, f.beat(0, 1, 3, "unhealthy")).Clears)
	require.Equal(t, "ready", f.node(0).State, "what it says is of before the clear")
	f.sendBeat("daemon", 0, f.beat(0, 1, 4, "healthy", func(b *contract.Heartbeat) { b.Clears = 1 }))
	f.sendBeat("daemon", 0, f.beat(0, 1, 5, "unhealthy", func(b *contract.Heartbeat) { b.Clears = 1 }))
	require.Equal(t, string(node.Quarantined), f.node(0).State, "it found it again")
}

// A node whose driver is older than its pool demands is taken out of use with the evidence, also where its daemon came
// later; a demand that is taken back has it be used again.
func TestAnOldDriverIsQuarantined(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	demand := func(least string) {
		pool := ask[contract.Pool](f.world, "root", http.MethodGet, "/v1/pools/"+f.node(0).PoolID, "")
		ask[contract.Pool](f.world, "root", http.MethodPatch, "/v1/pools/"+pool.ID, `{"min_driver":"`+least+`"}`,
			"If-Match", fmt.Sprintf("%q", fmt.Sprint(pool.Version)))
	}
	seq := int64(0)
	say := func(driver string) {
		seq++
		f.clock.Advance(time.Minute)
		f.sendBeat("daemon", 0, f.beat(0, 1, seq, "healthy", func(b *contract.Heartbeat) { b.Look.Driver = driver }))
	}
	demand("535.104")
	say("570.86.10")
	require.Equal(t, "ready", f.node(0).State)
	say("")
	require.Equal(t, "ready", f.node(0).State, "nobody can tell")
	say("525.85.12")
	require.Equal(t, string(node.Quarantined), f.node(0).State)
	require.Equal(t, ledger.ReasonOldDriver, f.node(0).Reason)
	said := ask[contract.Explanation](f.world, "root", http.MethodGet, f.path(0, "explain"), "")
	require.Contains(t, said.Summary, "its driver is 525.85.12, and its pool demands 535.104 or newer")
}

// Jobs start elsewhere while the hottest GPU of a node is too hot, as soon as that is written down.
func TestAHotNodeIsNoted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy"))
	require.Zero(t, f.node(0).HotUntil)
	f.clock.Advance(30 * time.Second)
	f.sendBeat("daemon", 0, f.beat(0, 1, 2, "healthy", func(b *contract.Heartbeat) {
		b.Look.GPUs[0].Temperature = new(91)
	}))
	require.True(t, f.node(0).HotUntil.After(f.clock.Now().Add(4*time.Minute)))
	require.Zero(t, f.node(1).HotUntil)
	said := ask[contract.Explanation](f.world, "root", http.MethodGet, f.path(0, "explain"), "")
	require.Contains(t, said.Summary, "too hot (91 °C)")
}

// Whoever works on a node keeps its GPUs when another GPU there is found to be sick, and an operator decides
// what becomes of the node.
func TestHoldersStayOnANodeWithASickGPU(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	held := ask[contract.Allocation](f.world, "root", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":8}`,
		"Idempotency-Key", "held")
	require.Equal(t, "active", held.State)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "unhealthy"))
	f.runDueTasks(contract.Pool{})
	require.Equal(t, string(node.Quarantined), f.node(0).State)
	require.True(t, f.node(0).Kept)
	require.Equal(t, "active", ask[contract.Allocation](f.world, "root", http.MethodGet, "/v1/allocations/"+held.ID,
		"").State)
}

// What a daemon says of GPUs that its node does not have changes nothing.
func TestForeignGPUsSayNothingOfANode(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	for _, foreign := range []string{"GPU-SIM-of-a-trial", f.nodes[1].ID + "-gpu0"} {
		f.sendBeat("daemon", 0, f.beat(0, 1, int64(len(foreign)), "unhealthy", func(b *contract.Heartbeat) {
			b.Look.GPUs[0].UUID = foreign
		}))
	}
	require.Equal(t, "ready", f.node(0).State)
	require.Equal(t, "ready", f.node(1).State)
}

// A simulated daemon makes up its own UUIDs: on a simulated node its GPUs stand for those of the same index.
func TestSimulatedGPUsAreMatchedByIndex(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy", func(b *contract.Heartbeat) {
		b.Look.Source = "simulated"
		for g := range b.Look.GPUs {
			b.Look.GPUs[g].UUID = fmt.Sprint("GPU-SIM-", g)
		}
	}))
	seen := f.gpu(0, 2).Seen
	require.NotNil(t, seen)
	require.True(t, seen.Simulated)
	require.Equal(t, 21, *seen.Utilization)
}

// A GPU that stands in a look twice would be two series of one name, and take all metrics away.
func TestALookNamesAGPUOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	twice := f.beat(0, 1, 1, "healthy", func(b *contract.Heartbeat) { b.Look.GPUs[1] = b.Look.GPUs[0] })
	require.Equal(t, http.StatusUnprocessableEntity, f.send("daemon", http.MethodPut, f.path(0, "heartbeat"), twice).Code)
}

// A join clears the way for the true daemon, whatever somebody with its old key has said.
func TestAJoinForgetsAForgedEpoch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "stolen")
	f.sendBeat("stolen", 0, f.beat(0, math.MaxInt64, 1, "healthy"))
	f.clock.Advance(time.Minute)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 5, 1, "healthy"))
}

// A daemon that renews its key all the time is bounded like one that does not.
func TestRenewalsDoNotMultiplyWhatANodeMaySend(t *testing.T) {
	t.Parallel()
	f := newFleet(t, func(c *server.Config) { c.Limits.Node = auth.Rate{PerSecond: 0.01, Burst: 3} })
	f.join(0, "boot", "daemon")
	refused := false
	for range 8 {
		r := f.send("daemon", http.MethodPost, f.path(0, "renew"), `{"boot_id":"boot"}`)
		if refused = r.Code == http.StatusTooManyRequests; refused {
			break
		}
		var got contract.NodeJoined
		require.NoError(t, json.Unmarshal(r.Body.Bytes(), &got))
		f.keys["daemon"] = got.Key
	}
	require.True(t, refused)
}

// What stands in lists of a report is bounded, each by itself.
func TestAReportOfLongWordsIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	long := []string{"short", strings.Repeat("x", 65)}
	for pointer, change := range map[string]func(*contract.Heartbeat){
		"/look/gpus/0/throttle/1": func(b *contract.Heartbeat) { b.Look.GPUs[0].Throttle = long },
		"/holds/1":                func(b *contract.Heartbeat) { b.Holds = long },
	} {
		refused := f.refuse("daemon", http.MethodPut, f.path(0, "heartbeat"), f.beat(0, 1, 1, "healthy", change))
		require.Equal(t, contract.CodeValidationFailed, refused.Code)
		require.Equal(t, pointer, refused.Errors[0].Pointer)
	}
}
