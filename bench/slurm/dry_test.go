package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// dryTest is a cluster of two nodes whose boots take 100 s, and 10 s more until a job begins.
var dryTest = drySettings{count: 2, perNode: 4, boot: 100, launch: 10, suspend: 60, idleRelease: 30}

// keeps wants so many nodes warm, all the time.
type keeps struct {
	nodes int
	rooms []contract.PoolRoom
}

func (*keeps) submit(int64, int, dryJob) error { return nil }
func (*keeps) end(int64, int, dryJob) error    { return nil }
func (k *keeps) decide(at int64, room contract.PoolRoom) ([]dryWindow, error) {
	k.rooms = append(k.rooms, room)
	return []dryWindow{{at, at + 300, k.nodes}}, nil
}

func playTest(t *testing.T, jobs []dryJob, until int64, policy dryPolicy) dryResult {
	t.Helper()
	r, err := play(dryTest, jobs, 0, until, policy)
	require.NoError(t, err)
	return r
}

// A job on a cold node waits for its boot, one beside it for the rest, and one that comes
// after both finds the node up until it is suspended.
func TestTheDryClusterBootsAndSuspends(t *testing.T) {
	t.Parallel()
	r := playTest(t, []dryJob{{submit: 1000, length: 200, nodes: 1, gpus: 1},
		{submit: 1050, length: 100, nodes: 1, gpus: 3}, {submit: 1340, length: 10, nodes: 1, gpus: 4},
		{submit: 1500, length: 10, nodes: 1, gpus: 4}}, 2000, nil)
	require.Equal(t, []int64{0, 60, 110, 110}, r.waits)
	require.Equal(t, int64(200+10+10), r.worked)
	require.Equal(t, int64(1410-1000+180), r.powered, "until it was unused for its suspend time, twice")
}

// A gang takes two whole nodes, and what does not fit waits for its turn.
func TestADryGangTakesWholeNodes(t *testing.T) {
	t.Parallel()
	r := playTest(t, []dryJob{{submit: 10, length: 100, nodes: 2, gpus: 4},
		{submit: 11, length: 1, nodes: 1, gpus: 1}}, 1000, nil)
	require.Equal(t, []int64{110, 210 - 1}, r.waits)
}

// A promise keeps an idle node up, is claimed by the job that begins on it, and another node
// takes its place.
func TestADryPromiseIsClaimed(t *testing.T) {
	t.Parallel()
	k := &keeps{nodes: 1}
	r := playTest(t, []dryJob{{submit: 1000, length: 200, nodes: 1, gpus: 3}}, 1200, k)
	require.Equal(t, []int64{0}, r.waits)
	require.Equal(t, 1, r.claims)
	require.Equal(t, int64(200), r.worked)
	require.Equal(t, int64(1200+180), r.powered, "the first node all the time, and one more from the next look on")
	require.Equal(t, contract.PoolRoom{IdleNodes: 1}, k.rooms[10])
	require.Equal(t, contract.PoolRoom{IdleNodes: 1, Shared: []contract.SharedNodes{{FreeGPUs: 1, Nodes: 1}}}, k.rooms[19])
}

// The replay of a week is the same each time, and the agent waits less than the cluster alone.
func TestADryWeekWithTheAgent(t *testing.T) {
	t.Parallel()
	o := options{nodes: 8, seed: 3, weeksBefore: 1, waitWorth: 32, boot: 20 * time.Second, suspend: 30 * time.Second,
		day: 24 * time.Minute}
	replay := func(policy dryPolicy) dryResult {
		r, err := replayWeek(o, o.drySettings(), 0, policy)
		require.NoError(t, err)
		return r
	}
	agent := func() dryPolicy {
		a, err := newDryAgent(o, usualBoot+dryLaunch, aware)
		require.NoError(t, err)
		return a
	}
	alone, with := replay(nil), replay(agent())
	require.Equal(t, with, replay(agent()))
	require.Len(t, with.waits, len(alone.waits))
	require.Less(t, with.wait(), alone.wait())
	require.Greater(t, with.overhead(), alone.overhead())
	require.Positive(t, with.claims)
}

func TestTheWaitAtAnOverhead(t *testing.T) {
	t.Parallel()
	week := func(wait, idle int64) []dryResult {
		return []dryResult{{waits: []int64{wait}, powered: 100 + idle, worked: 100}}
	}
	alive := []keepAlive{{weeks: week(60, 20)}, {weeks: week(20, 60)}}
	wait, found := waitAt(alive, 30, keepAlive.sum)
	require.True(t, found)
	require.InDelta(t, 50, wait, 1e-9)
	_, found = waitAt(alive, 61, keepAlive.sum)
	require.False(t, found)
}
