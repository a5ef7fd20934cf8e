package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }

func gpus(n int) placement.Request {
	return placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: n}}
}

func gang(nodes, per int, near placement.Nearness) placement.Request {
	return placement.Request{Shape: capacity.Shape{Nodes: nodes, PerNode: per}, Near: near}
}

func machine(id, group string) placement.Node {
	return placement.Node{ID: id, Group: group, Kind: placement.Kind{GPUs: 4, MemoryMiB: 80_000}}
}

func newCluster(t require.TestingT, nodes ...placement.Node) *placement.Cluster {
	c, err := placement.New(placement.Policy{}, nodes)
	require.NoError(t, err)
	return c
}

// run takes what the request finds, for so many hours, and returns the nodes' ids.
func run(t require.TestingT, c *placement.Cluster, id string, r placement.Request, hours int) []string {
	p, ok := c.Find(r, noon, after(hours))
	require.True(t, ok, "%s has no place: %+v", id, c.Explain(r))
	c.Take(id, r, p, after(hours))
	return nodesOf(p)
}

func nodesOf(p placement.Placement) []string {
	var ids []string
	for _, s := range p {
		ids = append(ids, s.Node)
	}
	return ids
}

func TestTheTightestNodeIsTaken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, machine("a", ""), machine("b", ""), machine("c", ""))
	require.Equal(t, []string{"a"}, run(t, c, "1", gpus(1), 1))
	require.Equal(t, []string{"a"}, run(t, c, "2", gpus(1), 1), "not an empty one")
	require.Equal(t, []string{"b"}, run(t, c, "3", gpus(3), 1), "a has two left")
	require.Equal(t, []string{"b"}, run(t, c, "4", gpus(1), 1), "b has one left, a two")
	require.Equal(t, []string{"a"}, run(t, c, "5", gpus(2), 1))
	require.Equal(t, []string{"c"}, run(t, c, "6", gpus(4), 1))
	_, ok := c.Find(gpus(1), noon, after(1))
	require.False(t, ok)
	require.Equal(t, placement.NotEnough, c.Explain(gpus(1)).Reason)
}

// What keeps a job away from a node, and what makes one of two nodes the better.
func TestWhatANodeHasToBe(t *testing.T) {
	t.Parallel()
	plain := placement.Kind{Pool: "p", Model: "a100", GPUs: 4, MemoryMiB: 40_000}
	with := func(change func(*placement.Kind)) placement.Node {
		k := plain
		change(&k)
		return placement.Node{ID: "other", Kind: k}
	}
	want := func(change func(*placement.Request)) placement.Request {
		r := gpus(1)
		change(&r)
		return r
	}
	larger := with(func(k *placement.Kind) { k.MemoryMiB = 80_000 })
	labelled := with(func(k *placement.Kind) { k.Labels = placement.NewSet("disk=nvme", "zone=a") })
	tainted := with(func(k *placement.Kind) { k.Taints = placement.NewSet("interactive") })
	nvme, both := placement.NewSet("disk=nvme"), placement.NewSet("disk=nvme", "x")
	for name, tc := range map[string]struct {
		other placement.Node
		r     placement.Request
		node  string
	}{
		"smaller GPUs are enough":     {larger, gpus(1), "plain"},
		"larger GPUs are needed":      {larger, want(func(r *placement.Request) { r.MemoryMiB = 40_001 }), "other"},
		"no label is needed":          {labelled, gpus(1), "plain"},
		"a label is needed":           {labelled, want(func(r *placement.Request) { r.Labels = nvme }), "other"},
		"a label is preferred":        {labelled, want(func(r *placement.Request) { r.Prefers = nvme }), "other"},
		"one of two labels is not":    {labelled, want(func(r *placement.Request) { r.Labels = both }), ""},
		"a taint keeps it away":       {tainted, want(func(r *placement.Request) { r.Labels = nvme }), ""},
		"another model":               {larger, want(func(r *placement.Request) { r.Model = "h100" }), ""},
		"another pool":                {larger, want(func(r *placement.Request) { r.Pool = "q" }), ""},
		"more GPUs than a node has":   {larger, gpus(5), ""},
		"more than the largest GPU's": {larger, want(func(r *placement.Request) { r.MemoryMiB = 80_001 }), ""},
	} {
		c := newCluster(t, placement.Node{ID: "plain", Kind: plain}, tc.other)
		p, ok := c.Find(tc.r, noon, after(1))
		require.Equal(t, tc.node != "", ok, name)
		if ok {
			require.Equal(t, []string{tc.node}, nodesOf(p), name)
		} else {
			require.True(t, c.Explain(tc.r).Forever(), name)
		}
	}
	c := newCluster(t, tainted)
	_, ok := c.Find(gpus(1), noon, after(1))
	require.False(t, ok)
	tolerant := want(func(r *placement.Request) { r.Tolerates = placement.NewSet("interactive", "x") })
	require.Equal(t, []string{"other"}, run(t, c, "1", tolerant, 1))
}

func TestDrainedAndHotNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, machine("a", ""), machine("b", ""))
	set := func(id string, x placement.Condition, now time.Time) {
		require.True(t, c.SetCondition(id, x, now))
	}
	set("a", placement.Condition{Celsius: 75}, noon)
	require.Equal(t, []string{"b"}, run(t, c, "1", gpus(1), 1), "a is warm")
	set("b", placement.Condition{Drained: true}, noon)
	require.Equal(t, []string{"a"}, run(t, c, "2", gpus(1), 1), "and better than none")
	set("a", placement.Condition{Celsius: 85}, noon)
	_, ok := c.Find(gpus(1), noon, after(1))
	require.False(t, ok)
	require.Equal(t, placement.NotUsable, c.Explain(gpus(1)).Reason)
	set("a", placement.Condition{Celsius: 60}, noon.Add(time.Minute))
	_, ok = c.Find(gpus(1), noon.Add(time.Minute), after(1))
	require.False(t, ok, "it cools down for five minutes from when it was last hot")
	p, ok := c.Earliest(gpus(1), noon.Add(time.Minute), time.Hour)
	require.True(t, ok)
	require.Equal(t, noon.Add(5*time.Minute), p.From)
	c.Advance(noon.Add(5 * time.Minute))
	_, ok = c.Find(gpus(1), noon.Add(5*time.Minute), after(1))
	require.True(t, ok)
	require.False(t, c.SetCondition("z", placement.Condition{}, noon))
}

// A part is placed on the fullest GPU that stays within the load: 0.7 of its memory and
// 0.3 of its time, 0.85 at most.
func TestPartsOfGPUs(t *testing.T) {
	t.Parallel()
	shared := placement.Node{ID: "a", Kind: placement.Kind{GPUs: 2, MemoryMiB: 1000, Shared: true}}
	part := func(memory, compute int) placement.Request {
		return placement.Request{Part: placement.Part{MemoryMiB: memory, Compute: compute}}
	}
	c := newCluster(t, shared)
	device := func(id string, r placement.Request) uint64 {
		p, ok := c.Find(r, noon, after(1))
		require.True(t, ok, id)
		return c.Take(id, r, p, after(1))[0].Devices
	}
	require.EqualValues(t, 1, device("1", part(500, 500)), "load 0.5")
	require.EqualValues(t, 1, device("2", part(350, 350)), "load 0.85 together")
	require.EqualValues(t, 2, device("3", part(1, 1)), "the first is full")
	gpus, jobs := c.SharedGPUs()
	require.Equal(t, []int{2, 3}, []int{gpus, jobs})
	require.Zero(t, c.FreeGPUs())
	_, ok := c.Find(part(900, 900), noon, after(1))
	require.False(t, ok)
	c.Release("3")
	require.EqualValues(t, 2, device("4", part(900, 900)), "alone it may be above the limit")
	c.Release("1")
	c.Release("4")
	require.EqualValues(t, 1, device("5", part(100, 100)), "the shared one before an empty one")
	c.Release("2")
	c.Release("5")
	require.Equal(t, 2, c.FreeGPUs())
	c = newCluster(t, machine("b", ""))
	require.Equal(t, placement.NoMatch, c.Explain(part(1, 1)).Reason, "the pool does not allow it")
}

func TestGangs(t *testing.T) {
	t.Parallel()
	rack := []placement.Node{machine("a", "r1"), machine("b", "r1"), machine("c", "r1"), machine("d", "r2"),
		machine("e", "r2")}
	c := newCluster(t, rack...)
	require.Equal(t, []string{"d", "e"}, run(t, c, "1", gang(2, 4, placement.PreferOneGroup), 1),
		"the smallest group that holds it")
	require.Equal(t, []string{"a"}, run(t, c, "2", gpus(1), 1))
	require.Equal(t, placement.NotEnough, c.Explain(gang(3, 4, placement.Anywhere)).Reason)
	_, ok := c.Find(gang(3, 4, placement.Anywhere), noon, after(1))
	require.False(t, ok, "all or nothing")
	uneven := placement.Request{Shape: capacity.Shape{Nodes: 3, PerNode: 4, Short: 1}}
	p, ok := c.Find(uneven, noon, after(1))
	require.True(t, ok)
	require.Equal(t, placement.Placement{{Node: "b", GPUs: 4}, {Node: "c", GPUs: 4}, {Node: "a", GPUs: 3}}, p)
	c.Release("1")
	across := gang(4, 4, placement.PreferOneGroup)
	require.Equal(t, []string{"b", "c", "d", "e"}, run(t, c, "3", across, 1))
	require.Equal(t, placement.TooLarge, c.Explain(gang(4, 1, placement.RequireOneGroup)).Reason)
}

func TestEnoughGPUsOnTheWrongNodesAreFragmented(t *testing.T) {
	t.Parallel()
	c := newCluster(t, machine("a", ""), machine("b", ""))
	run(t, c, "1", gpus(3), 1)
	run(t, c, "2", gpus(2), 1)
	_, ok := c.Find(gpus(3), noon, after(1))
	require.False(t, ok)
	require.Equal(t, placement.Refusal{Reason: placement.Fragmented, Need: 3, Free: 3, Usable: 8}, c.Explain(gpus(3)))
}

// Nothing that is placed later delays what was promised.
func TestPromisesHold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, machine("a", ""))
	run(t, c, "running", gpus(3), 2)
	p, ok := c.Earliest(gpus(4), noon, 3*time.Hour)
	require.True(t, ok)
	require.Equal(t, after(2), p.From)
	p.ID = "large"
	c.Promise(p)
	_, ok = c.Find(gpus(1), noon, after(3))
	require.False(t, ok)
	require.Equal(t, placement.PromisedOut, c.Explain(gpus(1)).Reason)
	_, ok = c.Find(gpus(1), noon, after(2))
	require.True(t, ok, "it ends just when the promise begins")
	next, ok := c.Earliest(gpus(1), noon, 3*time.Hour)
	require.True(t, ok)
	require.Equal(t, after(5), next.From)
	c.EndBy("running", after(1))
	p, ok = c.Earliest(gpus(1), noon, time.Hour)
	require.True(t, ok)
	require.Equal(t, noon, p.From, "one GPU is free for the hour")
	withdrawn, ok := c.Withdraw("large")
	require.True(t, ok)
	require.Equal(t, after(2), withdrawn.From)
	_, ok = c.Withdraw("large")
	require.False(t, ok)
}

// A GPU that is promised to a part is shared with nobody else meanwhile, and one may be shared on a node with
// promises as long as that delays none of them.
func TestPromisesHoldOnSharedGPUs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, placement.Node{ID: "a", Kind: placement.Kind{GPUs: 2, MemoryMiB: 1000, Shared: true}})
	part := placement.Request{Part: placement.Part{MemoryMiB: 300, Compute: 300}}
	run(t, c, "shares", part, 8)
	run(t, c, "whole", gpus(1), 9)
	here := placement.Placement{{Node: "a", GPUs: 1, Devices: 1}}
	c.Promise(placement.Promised{ID: "part", Spots: here, From: after(1), Until: after(10)})
	_, ok := c.Find(part, noon, after(1))
	require.False(t, ok, "it is promised to another part")
	next, ok := c.Earliest(gpus(1), noon, time.Hour)
	require.True(t, ok)
	require.Equal(t, after(9), next.From, "the promise keeps the GPU when the other part has ended")
	c.Withdraw("part")
	all := placement.Placement{{Node: "a", GPUs: 2}}
	c.Promise(placement.Promised{ID: "large", Spots: all, From: after(9), Until: after(10)})
	_, ok = c.Find(part, noon, after(10))
	require.False(t, ok, "the large one would have one GPU only")
	got, ok := c.Find(part, noon, after(9))
	require.True(t, ok, "it ends just when the promise begins")
	require.Equal(t, here, got)
}

func TestBadNodesAreRefused(t *testing.T) {
	t.Parallel()
	_, err := placement.New(placement.Policy{}, []placement.Node{machine("a", ""), machine("a", "x")})
	require.ErrorContains(t, err, `adding node "a"`)
	for _, n := range []int{0, -1, 65} {
		_, err = placement.New(placement.Policy{}, []placement.Node{{ID: "a", Kind: placement.Kind{GPUs: n}}})
		require.Error(t, err)
	}
	c := newCluster(t, machine("a", ""))
	require.Error(t, c.Add(machine("b", ""), machine("a", "")))
	require.NoError(t, c.Add(machine("b", "")), "the refused ones were not added")
}

func TestSets(t *testing.T) {
	t.Parallel()
	s := placement.NewSet("b", "a", "", "b", "c\nd")
	require.Equal(t, []string{"a", "b", "c", "d"}, s.Words())
	require.Equal(t, s, placement.NewSet("d", "c", "b", "a"))
	n, all := s.Covers(placement.NewSet("a", "x"))
	require.Equal(t, 1, n)
	require.False(t, all)
	_, all = placement.Set("").Covers("")
	require.True(t, all)
	require.Nil(t, placement.NewSet().Words())
}
