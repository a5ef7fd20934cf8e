package proof_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
)

// observed makes the world's pool one in which a cluster's own scheduler places the work:
// that of the account narrow is the second organization's.
func (w *world) observed() *cluster {
	w.t.Helper()
	_, err := w.ledger.UpdatePool(w.ctx, ledger.SystemActor("test"), "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) {
			p.Observed = true
			p.Timers.WarmHold = 3 * time.Hour // some looks long
			p.Holders = capacity.Holders{Default: "wide",
				Rules: []capacity.HolderRule{{Account: "narrow", OrganizationID: "narrow"}}}
		})
	require.NoError(w.t, err)
	require.NoError(w.t, w.ledger.EnsureObserving(w.ctx, "sim"))
	c := &cluster{world: w}
	w.look = c.observe
	return c
}

// cluster is a scheduler of its own beside a world's pool.
type cluster struct {
	*world
	made     int
	work     []ledger.ObservedWork
	complete bool
}

// observe is what a look at the cluster reports. What ended is told of once more, and then
// forgotten.
func (c *cluster) observe(g ledger.Guard) error {
	_, err := c.ledger.ReportObserved(c.ctx, g, ledger.Observation{Provisioner: "sim", At: c.now, Mark: c.now.String(),
		Complete: c.complete, Work: c.work, Nodes: c.seeNodes(), KeepWithin: time.Minute})
	if c.complete {
		var rest []ledger.ObservedWork
		for _, w := range c.work {
			if w.EndedAt.IsZero() || c.now.Sub(w.EndedAt) < 10*time.Minute {
				rest = append(rest, w)
			}
		}
		c.work = rest
	}
	return err
}

// seeNodes are the nodes in keeping, with the work on them.
func (c *cluster) seeNodes() (nodes []ledger.ObservedNode) {
	busy := map[string]string{}
	for _, w := range c.work {
		for _, part := range w.Nodes {
			if w.EndedAt.IsZero() {
				busy[part.ProviderID] = node.TakenByWork
			}
		}
	}
	for _, n := range c.readRows(false).Pools[0].Nodes {
		nodes = append(nodes, ledger.ObservedNode{ProviderID: n.ProviderID, Taken: busy[n.ProviderID]})
	}
	return nodes
}

// takeStep lets the cluster do one thing, or the world.
func (c *cluster) takeStep(d drawn) string {
	c.complete = d.IntN(4, "complete") > 0
	switch d.IntN(6, "whose turn") {
	case 0, 1:
		return c.begin(d)
	case 2:
		return c.moveOn(d)
	case 3: // only then does anybody look
		c.passTime(6 * boot)
		return "look"
	default:
		return c.world.takeStep(d)
	}
}

// begin has the cluster give work some nodes: those of a promise, or any, kept warm or
// not, ready or not.
func (c *cluster) begin(d drawn) string {
	c.made++
	w := ledger.ObservedWork{Type: "gpu-2", Work: allocation.Work{ID: fmt.Sprint(c.made),
		QueuedAt: c.now.Add(-time.Duration(d.IntN(600, "queued")) * time.Second)}}
	if whose, nodes, found := c.drawReady(d); found && d.IntN(3, "for a promise") > 0 {
		w.Account, w.QueuedAt, w.StartedAt = whose, c.now, c.now
		if c.made%3 == 0 { // the cluster gives it to others
			w.Account = map[string]string{"wide": "narrow", "narrow": "wide"}[whose]
		}
		for _, n := range nodes[:1+d.IntN(len(nodes), "nodes")] {
			w.Nodes = append(w.Nodes, ledger.WorkNode{ProviderID: n.ProviderID, GPUs: perNode})
		}
	} else {
		w.Account, w.Nodes = []string{"wide", "narrow"}[d.IntN(2, "account")], c.drawNodes(d)
		if d.IntN(3, "boots") > 0 {
			w.StartedAt = c.now
		}
	}
	c.work = append(c.work, w)
	return fmt.Sprintf("begin %+v", w)
}

// drawReady draws a promise that is ready: whose it is, and its nodes.
func (c *cluster) drawReady(d drawn) (account string, nodes []node.Node, found bool) {
	state := c.readRows(false).Pools[0]
	promises := slices.DeleteFunc(state.Reservations,
		func(r reservation.Reservation) bool { return r.State() != reservation.Ready })
	if len(promises) == 0 {
		return "", nil, false
	}
	r := promises[d.IntN(len(promises), "promise")]
	for _, n := range state.Nodes {
		if slices.Contains(r.Slots, n.Slot) && n.State() == node.Ready {
			nodes = append(nodes, n)
		}
	}
	account = "wide"
	if r.OrganizationID == c.narrowActor().OrganizationID {
		account = "narrow"
	}
	return account, nodes, len(nodes) > 0
}

// drawNodes draws nodes, some of which are kept warm.
func (c *cluster) drawNodes(d drawn) []ledger.WorkNode {
	warm := slices.DeleteFunc(c.readRows(false).Pools[0].Nodes,
		func(n node.Node) bool { return n.State() != node.Ready && n.State() != node.Booting })
	parts := make([]ledger.WorkNode, 1+d.IntN(3, "nodes"))
	for i := range parts {
		parts[i].GPUs = 1 + d.IntN(perNode, "gpus")
		if i < len(warm) && d.IntN(3, "warm") > 0 {
			parts[i].ProviderID = warm[i].ProviderID
		}
	}
	return parts
}

// moveOn has work begin that waits for its nodes, or end.
func (c *cluster) moveOn(d drawn) string {
	if len(c.work) == 0 {
		return "nothing to move on"
	}
	w := &c.work[d.IntN(len(c.work), "which")]
	switch {
	case !w.EndedAt.IsZero():
	case w.StartedAt.IsZero() && d.IntN(4, "gives up") > 0:
		w.StartedAt = c.now
	default:
		w.EndedAt = c.now
	}
	return fmt.Sprintf("move on %+v", *w)
}

// TestObservedHistories runs random histories of a pool in which a cluster's own scheduler
// places the work: whatever it does, the statements of package invariants hold after each
// step, and in the end each piece of work is counted once.
func TestObservedHistories(t *testing.T) {
	t.Parallel()
	ctx, seen := t.Context(), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := inMemory(t, ctx)
		defer w.closeStore()
		c := w.observed()
		if rapid.Bool().Draw(t, "promised") { // by chance alone, few promises are ready in time
			c.complete = true // what nobody has watched before claims nothing
			w.reservePromise(reservation.Guaranteed, 2*perNode, 10*time.Minute, 4*time.Hour)
			w.passTime(10 * time.Minute)
		}
		before := w.readRows(false)
		for range rapid.IntRange(6, 18).Draw(t, "steps") {
			did := c.takeStep(drawn{t})
			after := w.readRows(false)
			require.Empty(t, invariants.Check(after), did)
			require.Empty(t, invariants.Between(before, after), did)
			before = after
		}
		c.complete = true
		w.passTime(24 * time.Hour)
		end := w.readRows(true)
		require.Empty(t, invariants.Check(end))
		require.Empty(t, invariants.Between(before, end))
		w.nothingMissing(end)
		countedOnce(t, end)
		for _, e := range end.Events {
			seen[e.Type+" "+e.Reason]++
		}
	})
	for _, moment := range []string{"allocation.active observed", "allocation.released work_ended",
		"reservation.claimed claimed", "reservation.warming node_taken", "allocation.pending observed"} {
		require.True(t, seen[moment] > 0 || !thorough, "no history had a %s: %v", moment, seen)
	}
}

// countedOnce: each piece of work is one allocation, and holds no GPU that another holds.
func countedOnce(t require.TestingT, rows invariants.Rows) {
	counted, held := map[string]bool{}, map[string]string{}
	for _, p := range rows.Pools {
		for _, a := range append(p.Allocations, rows.OverAllocations...) {
			require.False(t, a.Observed() && counted[a.Work.ID], "%s is counted twice", a.Work.ID)
			counted[a.Work.ID] = true
			for _, h := range a.Devices {
				require.False(t, a.Holds() && held[h.UUID] != "", "%s is in two hands", h.UUID)
				if a.Holds() {
					held[h.UUID] = a.ID
				}
			}
		}
	}
}
