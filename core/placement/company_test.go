package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
)

// in gives a request a company.
func in(r placement.Request, names, apart, beside placement.Set) placement.Request {
	r.Company = placement.Company{Names: names, Apart: apart, Beside: beside}
	return r
}

// pair is a gang of two nodes.
func pair(near placement.Nearness) placement.Request { return gang(2, 1, near) }

// Where a job goes beside one that runs on node b, of the nodes a to d of which b and c are near each other.
func TestWhereCompanyIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		there, asks placement.Request
		nodes       []string // none: nowhere, as it is kept apart
	}{
		"nobody says anything":       {gpus(1), gpus(1), []string{"b"}},
		"it stays apart":             {in(gpus(1), "x", "", ""), in(gpus(1), "", "x", ""), []string{"a"}},
		"the other stays apart":      {in(gpus(1), "", "y", ""), in(gpus(1), "y", "", ""), []string{"a"}},
		"from somebody else":         {in(gpus(1), "x", "", ""), in(gpus(1), "", "z", ""), []string{"b"}},
		"both of one name":           {in(gpus(1), "x", "x", ""), in(gpus(1), "x", "x", ""), []string{"a"}},
		"beside it":                  {in(gpus(1), "x", "", ""), in(gpus(1), "", "", "x"), []string{"b"}},
		"near it, as it has no room": {in(gpus(4), "x", "", ""), in(gpus(1), "", "", "x"), []string{"c"}},
		"near it, and apart":         {in(gpus(1), "x", "", ""), in(gpus(1), "", "x", "x"), []string{"c"}},
		"beside who is not there":    {in(gpus(4), "x", "", ""), in(gpus(1), "", "", "z"), []string{"a"}},
		"a gang apart":               {in(gpus(1), "x", "", ""), in(gang(3, 4, 0), "", "x", ""), []string{"a", "c", "d"}},
		"a gang apart has too few":   {in(gpus(1), "x", "", ""), in(gang(4, 1, 0), "", "x", ""), nil},
		"a gang apart in one group":  {in(gpus(1), "x", "", ""), in(pair(placement.RequireOneGroup), "", "x", ""), nil},
		"a gang near":                {in(gpus(4), "x", "", ""), in(gang(1, 4, 0), "", "", "x"), []string{"c"}},
		"a gang that prefers one group": {in(gpus(1), "x", "", ""), in(pair(placement.PreferOneGroup), "", "x", ""),
			[]string{"a", "c"}},
	} {
		c := newCluster(t, machine("a", "1"), machine("b", "2"), machine("c", "2"), machine("d", "3"))
		c.Take("there", tc.there, placement.Placement{{Node: "b", GPUs: tc.there.GPUs()}}, after(5))
		p, found := c.Find(tc.asks, noon, after(1))
		require.Equal(t, tc.nodes, nodesOf(p), name)
		require.Equal(t, tc.nodes != nil, found, name)
		if !found && tc.asks.Near == placement.Anywhere {
			require.Equal(t, placement.KeptApart, c.Explain(tc.asks).Reason, name)
		}
	}
}

// Who stays apart is promised a start when the other has gone, and nobody it shuns starts in its time.
func TestCompanyInTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, machine("a", ""))
	c.Take("there", in(gpus(1), "x", "", ""), placement.Placement{{Node: "a", GPUs: 1}}, after(5))
	apart := in(gpus(1), "y", "x", "")
	p, ok := c.Earliest(apart, noon, time.Hour)
	require.True(t, ok)
	require.Equal(t, after(5), p.From)
	p.ID = "apart"
	c.Promise(p)
	find := func(r placement.Request, until time.Time) bool {
		_, ok := c.Find(r, noon, until)
		require.Equal(t, ok, c.CanTake(r, placement.Placement{{Node: "a", GPUs: 1}}, noon, until))
		return ok
	}
	require.False(t, find(in(gpus(1), "x", "", ""), after(6)), "it would be there when the other begins")
	require.True(t, find(in(gpus(1), "x", "", ""), after(5)), "it is over before")
	require.False(t, find(in(gpus(1), "", "x", ""), after(1)), "it stays apart from who is there")
	require.True(t, find(gpus(1), after(9)), "others share the node")
	c.Release("there")
	p, ok = c.Earliest(in(gpus(1), "x", "", ""), noon, 7*time.Hour)
	require.True(t, ok)
	require.Equal(t, after(6), p.From, "after who was promised")
}

// A node for one tenant at a time takes nobody else's work beside it, now or in the time of a promise, and gangs spread
// over such nodes and others.
func TestNodesForOneTenantAtATime(t *testing.T) {
	t.Parallel()
	of := func(tenant string, r placement.Request) placement.Request {
		r.Company.Tenant = tenant
		return r
	}
	lone := func(id string) placement.Node {
		n := machine(id, "")
		n.OneTenant = true
		return n
	}
	c := newCluster(t, lone("a"), lone("b"), machine("c", ""))
	c.Take("there", of("x", gpus(1)), placement.Placement{{Node: "a", GPUs: 1}}, after(5))
	c.Take("full", of("x", gpus(4)), placement.Placement{{Node: "c", GPUs: 4}}, after(9))
	find := func(r placement.Request, until time.Time) []string {
		p, _ := c.Find(r, noon, until)
		return nodesOf(p)
	}
	require.Equal(t, []string{"a"}, find(of("x", gpus(1)), after(1)), "beside its own")
	require.Equal(t, []string{"b"}, find(of("y", gpus(1)), after(1)))
	require.Equal(t, []string{"a", "b"}, find(of("x", gang(2, 1, 0)), after(1)))
	require.Nil(t, find(of("y", gang(2, 1, 0)), after(1)))
	require.Equal(t, placement.KeptApart, c.Explain(of("y", gang(2, 1, 0))).Reason)
	p, ok := c.Earliest(of("y", gang(2, 1, 0)), noon, time.Hour)
	require.True(t, ok)
	require.Equal(t, after(5), p.From, "when the other has gone")
	p.ID = "gang"
	c.Promise(p)
	require.Nil(t, find(of("x", gpus(1)), after(6)), "the promise would be barred")
	require.Equal(t, []string{"a"}, find(of("x", gpus(1)), after(5)))
	c.Release("full")
	require.ElementsMatch(t, []string{"b", "c"}, find(of("y", gang(2, 1, 0)), after(5)), "nodes of both sorts")
}
