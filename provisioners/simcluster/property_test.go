package simcluster_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// play is a random history of a cluster, beside a second cluster which is given the same
// and looked at only in the end.
type play struct {
	*rapid.T
	t         *testing.T
	clock     *clock.Manual
	config    simcluster.Config
	looked    *simcluster.Cluster
	blind     *simcluster.Cluster
	first     provisioners.Mark
	mark      provisioners.Mark
	seen      map[string]provisioners.Work
	jobs, ids []string
	tokens    int
}

func newPlay(t *testing.T, r *rapid.T, folder string) *play {
	c := testConfig()
	c.Seed = rapid.Uint64().Draw(r, "seed")
	c.SuspendTime = time.Duration(rapid.IntRange(0, 90).Draw(r, "suspend")) * time.Second
	c.Work = []simcluster.Work{
		{Job: simcluster.Job{Name: "often", GPUs: 1, Length: 40 * time.Second}, Every: time.Minute,
			Jitter: 50 * time.Second},
		{Job: simcluster.Job{Name: "gang", Nodes: 2, Length: 3 * time.Minute}, Every: 7 * time.Minute},
	}
	p := &play{T: r, t: t, clock: clock.NewManual(start), config: c, seen: map[string]provisioners.Work{}}
	p.blind = p.open()
	p.config.StateFile = filepath.Join(folder, "cluster.json")
	p.looked = p.open()
	p.mark = p.observe(p.looked, "").Mark
	p.first = p.mark
	return p
}

func (p *play) open() *simcluster.Cluster {
	c, err := simcluster.New(p.config, p.clock)
	require.NoError(p, err)
	return c
}

func (p *play) observe(c *simcluster.Cluster, since provisioners.Mark) provisioners.Observation {
	seen, err := c.Observe(p.t.Context(), since)
	require.NoError(p, err)
	require.True(p, seen.Complete)
	return seen
}

// both does the same to both clusters, which must answer the same.
func (p *play) both(do func(*simcluster.Cluster) (string, error)) (string, error) {
	one, err := do(p.looked)
	other, errOther := do(p.blind)
	require.Equal(p, one, other)
	require.Equal(p, fmt.Sprint(err), fmt.Sprint(errOther))
	return one, err
}

func (p *play) step() {
	switch rapid.IntRange(0, 7).Draw(p.T, "step") {
	case 0:
		p.tokens++
		id, err := p.both(func(c *simcluster.Cluster) (string, error) {
			made, err := c.Create(p.t.Context(), fmt.Sprint(p.tokens), provisioners.Spec{Type: "gpu-4", Owner: "dep",
				NodeID: fmt.Sprint("nod_", p.tokens)})
			return made.ID, err
		})
		if err == nil {
			p.ids = append(p.ids, id)
		}
	case 1:
		j := simcluster.Job{Name: "job", Type: rapid.SampledFrom([]string{"gpu-4", "gpu-8"}).Draw(p.T, "type"),
			GPUs: rapid.IntRange(1, 4).Draw(p.T, "gpus"), Exclusive: rapid.Bool().Draw(p.T, "exclusive"),
			Length: time.Duration(rapid.IntRange(1, 600).Draw(p.T, "length")) * time.Second}
		id, err := p.both(func(c *simcluster.Cluster) (string, error) { return c.Submit(j) })
		require.NoError(p, err)
		p.jobs = append(p.jobs, id)
	case 2:
		if len(p.jobs) > 0 {
			id := rapid.SampledFrom(p.jobs).Draw(p.T, "job")
			_, _ = p.both(func(c *simcluster.Cluster) (string, error) { return "", c.Cancel(id) })
		}
	case 3:
		if len(p.ids) > 0 {
			id := rapid.SampledFrom(p.ids).Draw(p.T, "id")
			_, _ = p.both(func(c *simcluster.Cluster) (string, error) { return "", c.Delete(p.t.Context(), id) })
		}
	case 4:
		p.looked = p.open() // a restart
	case 5:
		_, _ = p.both(func(c *simcluster.Cluster) (string, error) { return "", c.Keep(p.t.Context(), p.ids) })
	default:
		p.clock.Advance(time.Duration(rapid.IntRange(1, 120_000).Draw(p.T, "wait")) * time.Millisecond)
	}
}

// look holds an observation against itself, and against what was seen before.
func (p *play) look() {
	seen := p.observe(p.looked, p.mark)
	p.mark = seen.Mark
	nodes, taken := map[string]provisioners.ObservedNode{}, map[string]int{}
	for _, n := range seen.Nodes {
		nodes[n.Name] = n
	}
	for _, w := range seen.Work {
		if before, known := p.seen[w.ID]; known && !before.StartedAt.IsZero() {
			require.Equal(p, before.StartedAt, w.StartedAt)
			require.Equal(p, before.Nodes, w.Nodes)
		}
		p.seen[w.ID] = w
		for _, part := range w.Nodes {
			if !w.EndedAt.IsZero() {
				continue
			}
			taken[part.Name] += part.GPUs
			require.True(p, w.StartedAt.IsZero() || nodes[part.Name].State == provisioners.NodeTaken,
				"%s runs on %s, which is %s", w.ID, part.Name, nodes[part.Name].State)
		}
	}
	for _, n := range seen.Nodes {
		require.Equal(p, taken[n.Name], n.GPUsTaken)
		require.LessOrEqual(p, n.GPUsTaken, n.GPUs)
	}
}

// requireNoOverlap checks that at no time a node had more work than GPUs.
func (p *play) requireNoOverlap(work []provisioners.Work) {
	for _, w := range work {
		for _, part := range w.Nodes {
			used := 0
			for _, other := range work {
				i := slices.IndexFunc(other.Nodes, func(n provisioners.WorkNode) bool { return n.Name == part.Name })
				if i >= 0 && !w.StartedAt.IsZero() && !other.StartedAt.IsZero() &&
					!other.StartedAt.After(w.StartedAt) &&
					(other.EndedAt.IsZero() || other.EndedAt.After(w.StartedAt)) {
					used += other.Nodes[i].GPUs
				}
			}
			size := map[byte]int{'4': 4, '8': 8}[part.Name[len("gpu-")]]
			require.LessOrEqual(p, used, size, "node %s when %s started", part.Name, w.ID)
		}
	}
}

// Whatever happens in whatever order: no GPU has two jobs, no job runs on a node that is
// not up, what is told over any sequence of marks is the whole history, and neither
// looks nor restarts change what happens.
func TestProperties(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		p := newPlay(t, r, filepath.Join(folder, fmt.Sprint(run)))
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			p.step()
			if rapid.Bool().Draw(r, "look") {
				p.look()
			}
		}
		p.look()
		whole := p.observe(p.blind, p.first)
		told := map[string]provisioners.Work{}
		for _, w := range whole.Work {
			told[w.ID] = w
		}
		require.Equal(r, told, p.seen)
		require.Equal(r, whole.Nodes, p.observe(p.looked, "").Nodes)
		p.requireNoOverlap(whole.Work)
	})
}

func TestTheSeedDecides(t *testing.T) {
	t.Parallel()
	week := func(seed uint64) []provisioners.Work {
		c := testConfig()
		c.Seed = seed
		c.Work = []simcluster.Work{{Job: simcluster.Job{Name: "often", Length: time.Minute}, Every: time.Hour,
			Jitter: time.Minute}}
		l := openLab(t, c)
		mark := l.observe("").Mark
		l.clock.Advance(24 * time.Hour)
		return l.observe(mark).Work
	}
	require.Len(t, week(1), 24)
	require.Equal(t, week(1), week(1))
	require.NotEqual(t, week(1), week(2))
}
