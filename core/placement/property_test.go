package placement_test

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
)

// history is a cluster beside plain lists of what it was told.
type history struct {
	nodes      []placement.Node
	c          *placement.Cluster
	held       map[string]placement.Holding
	promised   map[string]placement.Promised
	conditions map[string]placement.Condition
	now        time.Time
	next       int
}

func drawNodes(t *rapid.T) []placement.Node {
	all := make([]placement.Node, rapid.IntRange(1, 7).Draw(t, "nodes"))
	for i := range all {
		all[i] = machine(fmt.Sprint("n", i), rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "group"))
	}
	return all
}

func drawRequest(t *rapid.T) placement.Request {
	s := capacity.Shape{Nodes: rapid.IntRange(1, 4).Draw(t, "ranks"), PerNode: rapid.IntRange(1, 4).Draw(t, "GPUs")}
	if s.Nodes > 1 && s.PerNode > 1 {
		s.Short = rapid.IntRange(0, s.PerNode-1).Draw(t, "short")
	}
	near := rapid.SampledFrom([]placement.Nearness{placement.Anywhere, placement.PreferOneGroup,
		placement.RequireOneGroup}).Draw(t, "near")
	return placement.Request{Shape: s, Near: near}
}

// freeOn counts what is free on a node over a span, from the lists alone.
func (h *history) freeOn(n placement.Node, from, until time.Time) int {
	instants := []time.Time{from}
	for _, p := range h.promised {
		if p.From.After(from) && p.From.Before(until) {
			instants = append(instants, p.From)
		}
	}
	least := n.GPUs
	for _, at := range instants {
		free := n.GPUs
		for _, x := range h.held {
			if x.Until.After(at) || at.Equal(h.now) {
				free -= countOn(n, x.Spots)
			}
		}
		for _, p := range h.promised {
			if !p.From.After(at) && p.Until.After(at) {
				free -= countOn(n, p.Spots)
			}
		}
		least = min(least, free)
	}
	return least
}

func countOn(n placement.Node, spots placement.Placement) int {
	sum := 0
	for _, s := range spots {
		if s.Node == n.ID {
			sum += s.GPUs
		}
	}
	return sum
}

// fits says from the lists alone whether the request could be placed over a span.
func (h *history) fits(r placement.Request, from, until time.Time) bool {
	groups := map[string][]placement.Node{}
	for _, n := range h.nodes {
		g := ""
		if r.Near == placement.RequireOneGroup && r.Shape.Nodes > 1 {
			g = n.Group
		}
		groups[g] = append(groups[g], n)
	}
	for _, nodes := range groups {
		full, some := 0, 0
		for _, n := range nodes {
			free := h.freeOn(n, from, until)
			if free >= r.Shape.PerNode {
				full++
			}
			if free >= r.Shape.Least() {
				some++
			}
		}
		if full >= r.Shape.Full() && some >= r.Shape.Nodes {
			return true
		}
	}
	return false
}

func (h *history) step(t *rapid.T) {
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 5:
		n := rapid.SampledFrom(h.nodes).Draw(t, "node")
		x := placement.Condition{Celsius: rapid.SampledFrom([]int{60, 80}).Draw(t, "°C")}
		require.True(t, h.c.SetCondition(n.ID, x, h.now))
		h.conditions[n.ID] = x
	case 0, 1:
		h.start(t)
	case 2:
		h.promise(t)
	case 3:
		for _, id := range slices.Sorted(maps.Keys(h.held))[:min(1, len(h.held))] {
			got, ok := h.c.Release(id)
			require.True(t, ok)
			require.Equal(t, h.held[id], got)
			delete(h.held, id)
		}
	default:
		for _, id := range slices.Sorted(maps.Keys(h.promised))[:min(1, len(h.promised))] {
			got, ok := h.c.Withdraw(id)
			require.True(t, ok)
			require.Equal(t, h.promised[id], got)
			delete(h.promised, id)
		}
	}
}

// start places a request, and checks that it is refused only where the lists have no
// place for it.
func (h *history) start(t *rapid.T) {
	r := drawRequest(t)
	until := h.now.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "hours")) * time.Hour)
	spots, ok := h.c.Find(r, h.now, until)
	require.Equal(t, h.fits(r, h.now, until), ok, "%+v", r)
	if !ok {
		return
	}
	h.requireShape(t, r, spots)
	for _, s := range spots {
		n := h.nodes[slices.IndexFunc(h.nodes, func(n placement.Node) bool { return n.ID == s.Node })]
		require.GreaterOrEqual(t, h.freeOn(n, h.now, until), s.GPUs)
	}
	id := fmt.Sprint(h.next)
	h.next++
	taken := h.c.Take(id, r, spots, until)
	for _, s := range taken {
		require.Equal(t, s.GPUs, bits.OnesCount64(s.Devices))
		for _, x := range h.held {
			for _, o := range x.Spots {
				require.False(t, o.Node == s.Node && o.Devices&s.Devices != 0, "a GPU is in two hands")
			}
		}
	}
	h.held[id] = placement.Holding{ID: id, Spots: taken, Until: until}
}

// promise asks for the earliest start, which must be free of what is there, and not
// later than any end after which the request would fit on all of its nodes.
func (h *history) promise(t *rapid.T) {
	r := drawRequest(t)
	length := time.Duration(rapid.IntRange(1, 9).Draw(t, "hours")) * time.Hour
	p, ok := h.c.Earliest(r, h.now, length)
	if !ok {
		require.False(t, h.fits(r, h.now.Add(1000*time.Hour), h.now.Add(1001*time.Hour)))
		return
	}
	h.requireShape(t, r, p.Spots)
	require.False(t, p.From.Before(h.now))
	for _, s := range p.Spots {
		n := h.nodes[slices.IndexFunc(h.nodes, func(n placement.Node) bool { return n.ID == s.Node })]
		require.GreaterOrEqual(t, h.freeOn(n, p.From, p.Until), s.GPUs)
	}
	if r.Shape.Nodes == 1 {
		for at := h.now; at.Before(p.From); at = at.Add(time.Hour) {
			require.False(t, h.fits(r, at, at.Add(length)), "it could begin at %v, before %v", at, p.From)
		}
	}
	p.ID = fmt.Sprint(h.next)
	h.next++
	h.c.Promise(p)
	h.promised[p.ID] = p
}

func (h *history) requireShape(t *rapid.T, r placement.Request, spots placement.Placement) {
	require.Len(t, spots, r.Shape.Nodes)
	groups, nodes := map[string]bool{}, map[string]bool{}
	for i, s := range spots {
		require.Equal(t, r.Shape.On(i), s.GPUs)
		nodes[s.Node] = true
		for _, n := range h.nodes {
			if n.ID == s.Node {
				groups[n.Group] = true
			}
		}
	}
	require.Len(t, nodes, r.Shape.Nodes, "a node has two ranks")
	if r.Near == placement.RequireOneGroup {
		require.Len(t, groups, 1)
	}
}

// After any history a cluster answers what the plain lists say, and what one answers
// that is built anew from them, with its nodes in another order.
func TestAClusterIsItsHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		h := &history{nodes: nodes, c: newCluster(t, nodes...), held: map[string]placement.Holding{},
			promised: map[string]placement.Promised{}, conditions: map[string]placement.Condition{}, now: noon}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h.step(t)
		}
		shuffled := slices.Clone(nodes)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		anew := newCluster(t, shuffled[0])
		for _, n := range shuffled[1:] {
			require.NoError(t, anew.Add(n))
		}
		for id, x := range h.conditions {
			anew.SetCondition(id, x, noon)
		}
		for _, x := range h.held {
			anew.Restore(x)
		}
		for _, p := range h.promised {
			anew.Promise(p)
		}
		for range 5 {
			r, until := drawRequest(t), after(rapid.IntRange(1, 9).Draw(t, "until"))
			want, ok := h.c.Find(r, noon, until)
			got, gotOK := anew.Find(r, noon, until)
			require.Equal(t, ok, gotOK)
			require.Equal(t, want, got)
			require.Equal(t, h.c.Explain(r), anew.Explain(r))
			wantStart, _ := h.c.Earliest(r, noon, time.Hour)
			gotStart, _ := anew.Earliest(r, noon, time.Hour)
			require.Equal(t, wantStart, gotStart)
		}
	})
}
