//go:build services

package main_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
)

// story is what a watcher of the demo sees, in this order, before and after the
// demo is killed. What the agent says of itself and what the journal tells of its
// work come by different ways, so that either may be first.
var story = struct{ agent, before, after []string }{
	agent: []string{
		`agent +read \d+ jobs of a synthetic history`,
		`agent +keeps \d GPUs warm`,
	},
	before: []string{
		`reservation +booked`,
		`reservation +warming`,
		`node +booting`,
	},
	after: []string{
		`node +ready`,
		`reservation +ready`,
		`reservation +claimed`,
		`allocation +active .* with zero wait`,
		`allocation +released`,
		`node +gone`,
	},
}

// The demo tells its whole story also when it is killed in the middle of a boot
// and started again. A boot that takes uncommonly long comes too late for its sweep,
// as real ones do: then the next sweep, two minutes later, finds its GPUs warm.
func TestDemoStoryGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	limit := time.Now().Add(storyTime)
	env := []string{"FOREWARM_DATA_DIR=" + h.dataDir()}
	p := h.start(t, env, "up", "--demo", "--listen", "127.0.0.1:0")
	key := h.awaitKey(t, p)
	awaitStory(t, p, story.before, limit)
	p.kill()

	p = h.start(t, env, "up", "--demo", "--listen", "127.0.0.1:0")
	d := newDoor()
	d.open(t, p.awaitAddress(t))
	awaitStory(t, p, story.after, limit)
	assert.NotContains(t, p.output(), "degraded")
	api, err := client.New("http://forewarm.invalid", key, d)
	require.NoError(t, err)
	nodes, err := client.All(api.Nodes(t.Context(), client.Filter{All: true}))
	require.NoError(t, err)
	slots := map[int]string{}
	for _, n := range nodes {
		assert.True(t, n.Simulated, "the demo marks its machines")
		if n.GoneAt.IsZero() {
			assert.NotContains(t, slots, n.Slot, "two live nodes in one slot")
			slots[n.Slot] = n.ID
		}
	}
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// storyTime is for three sweeps, on a slow, busy machine.
const storyTime = 7 * time.Minute

func awaitStory(t *testing.T, p *process, steps []string, limit time.Time) {
	t.Helper()
	at := 0
	for _, step := range steps {
		at, _ = p.awaitLine(t, at, time.Until(limit), regexp.MustCompile(step))
		at++
	}
}
