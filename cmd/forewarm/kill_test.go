package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// cloudConfig is an installation in a hurry: machines boot in about a second,
// and the cloud sometimes does what it was asked without saying so.
const cloudConfig = `
listen: 127.0.0.1:0
data_dir: %s
deployment: e2e
log: {level: warn}
organization: {name: e2e, max_gpus: 64, speculation_per_day: 1000}
timing: {guard: 1s, boot_timeout: 1m, confirm_gone: 1s, stock_out: 1s, check_every: 300ms,
  verify_every: 2s, sweep_every: 2s}
provisioners:
  - kind: sim
    config:
      name: sim
      state_file: %s
      terminating: 500ms
      offers:
        - {type: sim-2, model: a100, gpus: 2, memory_mib: 81920, price_per_hour: 36,
           boot: {p50: 1s, p95: 1500ms, min: 500ms}}
      faults:
        - {op: create, effect: execute_and_timeout, times: 1}
        - {op: delete, effect: execute_and_timeout, times: 1}
        - {op: list, effect: truncate, times: 1}
pools:
  - {name: load, provisioner: sim, instance_type: sim-2, model: a100, gpus_per_node: 2, gpu_memory_mib: 81920,
     price_per_node_hour: 36, min_nodes: 1, max_nodes: 5, warm_hold: 2s, idle_release: 300ms}
`

// floor is the pool's min_nodes: what is left when everybody has gone home.
const floor = 1

// price is one node's per hour, the same in the cloud and in the pool.
const price = 36 * money.USD

func (h home) cloudFile() string { return filepath.Join(h.dir, "cloud.json") }

func (h home) writeCloud(t *testing.T) {
	t.Helper()
	h.writeConfig(t, fmt.Sprintf(cloudConfig, h.dataDir(), h.cloudFile()))
}

// readBill is the cloud's own account of every machine it ever made, read from its
// file.
func (h home) readBill(t *testing.T) sim.Bill {
	t.Helper()
	cloud, err := sim.New(sim.Config{StateFile: h.cloudFile()}.WithDefaults(), clock.System{})
	require.NoError(t, err)
	return cloud.Bill(time.Now())
}

// liveMachines are the machines on a bill that still cost money, by node.
func liveMachines(bill sim.Bill) map[string][]string {
	machines := map[string][]string{}
	for _, line := range bill.Lines {
		if line.To.Equal(billingTime(bill)) {
			machines[line.NodeID] = append(machines[line.NodeID], line.ID)
		}
	}
	return machines
}

// billingTime is the moment of the bill: the end of the line of everything that
// stands.
func billingTime(bill sim.Bill) time.Time {
	var last time.Time
	for _, line := range bill.Lines {
		if line.To.After(last) {
			last = line.To
		}
	}
	return last
}

// Trap c: the server is killed at any moment, again and again, under load.
// Nothing that was acknowledged is lost or there twice, and no machine is.
func TestTrapCKillNine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	p, d, api := h.startUp(t, "--config", h.configFile())
	l := newLoad(api)
	const seed = 7
	stop := l.startPeople(t.Context(), 6, seed)
	chance := rand.New(rand.NewPCG(seed, 99)) //nolint:gosec // a test's chance is to be repeatable
	for _, moment := range []string{
		"node.requested", "", "allocation.active", "node.provisioning", "node.booting", "reservation.claimed",
		"node.ready",
		"node.draining", "", "node.deprovisioning", "",
	} {
		untilMoment(t.Context(), api, moment, chance)
		p.kill()
		d.close()
		for node, machines := range liveMachines(h.readBill(t)) {
			assert.Len(t, machines, 1, "machines of node %s", node)
		}
		p = h.start(t, nil, "up", "--config", h.configFile())
		d.open(t, p.awaitAddress(t))
	}
	stop()
	for _, b := range l.listBookings(t) {
		if b.state == "active" || b.state == "pending" {
			l.releaseGPUs(t.Context(), b.id)
		}
	}
	l.checkBookings(t)
	awaitQuiet(t, api)
	require.Zero(t, p.stop(t, ending), p.errors.String())
	p = h.start(t, nil, "up", "--config", h.configFile())
	d.open(t, p.awaitAddress(t))
	compareBill(t, h, api)
}

// untilMoment waits until something of the kind happens, and then a little that
// chance decides. A kind that does not come, or none, is any moment.
func untilMoment(ctx context.Context, api *client.Client, kind string, chance *rand.Rand) {
	any := time.Duration(300+chance.IntN(2500)) * time.Millisecond
	little := time.Duration(chance.IntN(40)) * time.Millisecond
	if kind != "" {
		ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		for e, err := range api.Events(ctx, latestEvent(ctx, api)) {
			if err != nil || e.Type == kind {
				break
			}
		}
		any = little
	}
	<-time.After(any)
}

func latestEvent(ctx context.Context, api *client.Client) int64 {
	var after int64
	for {
		page, err := api.ListEvents(ctx, after, 200)
		if err != nil || len(page.Items) == 0 {
			return after
		}
		after = page.Items[len(page.Items)-1].Seq
	}
}

// awaitQuiet waits until nothing is booked and only the pool's floor is left.
func awaitQuiet(t *testing.T, api *client.Client) {
	t.Helper()
	eventually(t, patience, func() string {
		nodes, err := client.All(api.Nodes(t.Context(), client.Filter{}))
		if err != nil {
			return err.Error()
		}
		var states []string
		for _, n := range nodes {
			states = append(states, fmt.Sprintf("%s slot %d %s %s", n.ID, n.Slot, n.State, n.Reason))
		}
		live := 0
		for range api.Allocations(t.Context(), client.Filter{}) {
			live++
		}
		for range api.Reservations(t.Context(), client.Filter{}) {
			live++
		}
		if live > 0 || len(nodes) != floor || nodes[0].State != "ready" {
			return fmt.Sprintf("%d live bookings, nodes:\n%s", live, strings.Join(states, "\n"))
		}
		return ""
	})
}

// compareBill holds the cloud's account against the ledger's: the same machines,
// one for a node, and no more money than the ledger knows of. The ledger counts
// more: from the request of a node, while no worker is there to make it, until it
// was told of the end twice. How much more a clock tells that no machine slows
// down: TestTheLedgerIsTheBill of package worker.
func compareBill(t *testing.T, h home, api *client.Client) {
	t.Helper()
	nodes, err := client.All(api.Nodes(t.Context(), client.Filter{All: true, PageSize: 200}))
	require.NoError(t, err)
	bill := h.readBill(t)
	var live []string
	slots := map[int]string{}
	known := map[string]contract.Node{}
	for _, n := range nodes {
		known[n.ID] = n
		if n.GoneAt.IsZero() && n.State != "failed" {
			live = append(live, n.ID)
			assert.NotContains(t, slots, n.Slot, "two live nodes in one slot")
			slots[n.Slot] = n.ID
		}
	}
	var there []string
	for node, machines := range liveMachines(bill) {
		there = append(there, node)
		assert.Len(t, machines, 1, "machines of node %s", node)
	}
	slices.Sort(live)
	slices.Sort(there)
	assert.Equal(t, live, there, "live nodes of the ledger and machines of the cloud")
	checkLines(t, bill, known)
}

func checkLines(t *testing.T, bill sim.Bill, known map[string]contract.Node) {
	t.Helper()
	machines := map[string]int{}
	var charged, paid time.Duration
	for _, line := range bill.Lines {
		n, ok := known[line.NodeID]
		if !assert.True(t, ok, "machine %s is of a node that the ledger knows", line.ID) {
			continue
		}
		machines[n.ID]++
		assert.Equal(t, line.ID, n.ProviderID, "the machine of node %s", n.ID)
		assert.False(t, line.From.Before(n.RequestedAt), "machine %s is older than its node", line.ID)
		end := n.GoneAt
		if end.IsZero() {
			end = line.To
		}
		assert.False(t, line.To.After(end), "machine %s outlives its node", line.ID)
		paid += line.Billed
		charged += end.Sub(n.RequestedAt)
	}
	for node, count := range machines {
		assert.Equal(t, 1, count, "machines that node %s ever had", node)
	}
	assert.GreaterOrEqual(t, charged, paid)
	assert.Equal(t, money.MicroUSD(price).For(paid)/money.USD, bill.Total.Cost/money.USD)
	t.Logf("%d machines, %v on the bill, %v in the ledger", len(bill.Lines), paid.Round(time.Second),
		charged.Round(time.Second))
}
