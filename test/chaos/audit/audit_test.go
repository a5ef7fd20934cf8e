package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/test/chaos/audit"
	"github.com/forewarm/forewarm/test/chaos/load"
	"github.com/forewarm/forewarm/test/chaos/site"
)

var dawn = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

func secondsAfter(seconds int) time.Time { return dawn.Add(time.Duration(seconds) * time.Second) }

// heldAllocation is an allocation after the events.
func heldAllocation(t *testing.T, id, name string, events ...allocation.Event) allocation.Allocation {
	t.Helper()
	a := allocation.New(allocation.Allocation{ID: id, OrganizationID: "org", Name: name,
		Reservations: []string{"res_1"},
		Devices:      []allocation.Held{{NodeID: "nod_1", UUID: "gpu-b"}, {NodeID: "nod_1", UUID: "gpu-a"}}}, dawn)
	for _, e := range events {
		var err error
		a, err = a.Apply(e, "because", dawn)
		require.NoError(t, err)
	}
	return a
}

func promisedReservation(t *testing.T, id, name string, events ...reservation.Event) reservation.Reservation {
	t.Helper()
	r, err := reservation.New(reservation.Reservation{ID: id, OrganizationID: "org", Name: name}, reservation.Booked,
		dawn)
	require.NoError(t, err)
	for _, e := range events {
		r, err = r.Apply(e, "because", dawn)
		require.NoError(t, err)
	}
	return r
}

// ledgerRows have one reservation that was claimed, and its allocation, which
// was extended once and released.
func ledgerRows(t *testing.T) audit.Rows {
	t.Helper()
	return audit.Rows{
		Rows: invariants.Rows{Events: []ledger.Event{{Type: "allocation.extended", Subject: "alc_1"}}},
		Reservations: map[string]reservation.Reservation{"res_1": promisedReservation(t, "res_1", "r",
			reservation.Claim)},
		Allocations: map[string]allocation.Allocation{
			"alc_1": heldAllocation(t, "alc_1", "a", allocation.Activate, allocation.Release, allocation.Finish),
		},
	}
}

func toldEntry(op load.Op, id, name string) load.Entry {
	return load.Entry{At: dawn, Op: op, Organization: "org", ID: id, Name: name}
}

func TestWhatIsTrueIsNotLost(t *testing.T) {
	t.Parallel()
	claim := toldEntry(load.Claim, "alc_1", "a")
	claim.Reservation, claim.Devices = "res_1", []string{"gpu-a", "gpu-b"}
	require.Empty(t, ledgerRows(t).Lost([]load.Entry{
		toldEntry(load.Reserve, "res_1", "r"), toldEntry(load.Batch, "res_1", "r"), toldEntry(load.Plan, "res_1", ""),
		claim,
		toldEntry(load.Allocate, "alc_1", "a"), toldEntry(load.Extend, "alc_1", ""),
		toldEntry(load.Release, "alc_1", ""),
	}))
}

func TestEveryLossIsFound(t *testing.T) {
	t.Parallel()
	gpus := toldEntry(load.Allocate, "alc_1", "a")
	gpus.Devices = []string{"gpu-a", "gpu-c"}
	claim := toldEntry(load.Claim, "alc_1", "a")
	claim.Reservation = "res_2"
	stranger := toldEntry(load.Reserve, "res_1", "r")
	stranger.Organization = "other"
	for name, c := range map[string]struct {
		entries []load.Entry
		says    string
	}{
		"a reservation": {[]load.Entry{toldEntry(load.Reserve, "res_9", "r")},
			"reserve of res_9, acknowledged at 06:00:00.000, is not there"},
		"an item of a batch":   {[]load.Entry{toldEntry(load.Batch, "res_9", "r")}, "is not there"},
		"a plan's reservation": {[]load.Entry{toldEntry(load.Plan, "res_9", "")}, "is not there"},
		"an allocation":        {[]load.Entry{toldEntry(load.Allocate, "alc_9", "a")}, "is not there"},
		"its name":             {[]load.Entry{toldEntry(load.Reserve, "res_1", "x")}, `is "r" of org`},
		"its owner":            {[]load.Entry{stranger}, `is "r" of org`},
		"a cancellation":       {[]load.Entry{toldEntry(load.Cancel, "res_1", "")}, "is claimed"},
		"what was claimed":     {[]load.Entry{claim}, "did not claim res_2"},
		"the GPUs":             {[]load.Entry{gpus}, "was told of GPUs [gpu-a gpu-c] and held [gpu-a gpu-b]"},
		"an extension": {[]load.Entry{toldEntry(load.Extend, "alc_1", ""), toldEntry(load.Extend, "alc_1", "")},
			"2 extensions of alc_1 were acknowledged, and 1 took place"},
		"an extension of nobody": {[]load.Entry{toldEntry(load.Extend, "alc_9", "")},
			"1 extensions of alc_9 were acknowledged, and 0 took place"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := ledgerRows(t).Lost(c.entries)
			require.Len(t, lost, 1)
			require.Contains(t, lost[0], c.says)
		})
	}
}

func TestAReleaseThatDidNotHappenIsLost(t *testing.T) {
	t.Parallel()
	rows := ledgerRows(t)
	rows.Allocations["alc_1"] = heldAllocation(t, "alc_1", "a", allocation.Activate)
	require.Len(t, rows.Lost([]load.Entry{toldEntry(load.Release, "alc_1", "")}), 1)
}

func TestEverythingThatIsThereTwiceIsFound(t *testing.T) {
	t.Parallel()
	rows := ledgerRows(t)
	require.Empty(t, rows.Doubled(map[string]int{"alc_1": 1}))
	require.Len(t, rows.Doubled(nil), 1, "an extension that nobody asked for")

	rows.Reservations["res_2"] = promisedReservation(t, "res_2", "r")
	rows.Allocations["alc_2"] = heldAllocation(t, "alc_2", "a")
	rows.Reservations["res_3"], rows.Reservations["res_4"] = promisedReservation(t, "res_3", ""),
		promisedReservation(t, "res_4", "") // an agent's have no names
	rows.Overlaps = []string{"GPU x was held by two"}
	require.Len(t, rows.Doubled(map[string]int{"alc_1": 1}), 3)
}

func TestTwins(t *testing.T) {
	t.Parallel()
	life := func(id, node string, from, to int) site.Machine {
		return site.Machine{ID: id, Node: node, From: secondsAfter(from), To: secondsAfter(to)}
	}
	require.Empty(t, audit.Twins([]site.Machine{life("a", "1", 0, 10), life("b", "1", 10, 20), life("c", "2", 5, 15)}))
	require.Equal(t, []string{"node 1 had a and b at one time"},
		audit.Twins([]site.Machine{life("a", "1", 0, 10), life("b", "1", 9, 20)}))
}

// nodeWithMachine is a node with its machine, over since a moment.
func nodeWithMachine(t *testing.T, id, machine string, gone int) node.Node {
	t.Helper()
	n := node.New(id, "pool", 0, 1, dawn)
	n.ProviderID = machine
	for _, e := range []node.Event{node.Provision, node.Boot, node.Retire, node.Confirm} {
		if e == node.Confirm && gone < 0 {
			break
		}
		var err error
		n, err = n.Apply(e, "", secondsAfter(gone))
		require.NoError(t, err)
	}
	return n
}

func TestOwnerless(t *testing.T) {
	t.Parallel()
	rows := audit.Rows{Nodes: []node.Node{nodeWithMachine(t, "live", "m1", -1), nodeWithMachine(t, "late", "", 30),
		nodeWithMachine(t, "over", "m3", 50),
		nodeWithMachine(t, "other", "m5", 90)}}
	machine := func(id, node string, from, to int, standing bool) site.Machine {
		return site.Machine{ID: id, Node: node, From: secondsAfter(from), To: secondsAfter(to), Live: standing}
	}
	found := rows.Ownerless([]site.Machine{
		machine("m1", "live", 0, 100, true),   // owned
		machine("m2", "late", 10, 45, false),  // 15 s after its node was over
		machine("m3", "over", 0, 49, false),   // owned to its end
		machine("m4", "other", 20, 60, false), // the second machine of its node
		machine("m6", "nobody", 0, 5, true),   // of no node
		machine("m7", "late", 60, 61, false),  // made after its node was over
	}, 20*time.Second)
	require.Equal(t, 4, found.Machines)
	require.Equal(t, (15+40+5+1)*time.Second, found.Total)
	require.Equal(t, 40*time.Second, found.Longest)
	require.Equal(t, []string{
		"machine m4 of node other stood for 40s without an owner, from 06:00:20.000 on",
		"machine m6 of node nobody stands, and no live node owns it",
	}, found.Orphans)
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	source := capacity.Offering{Price: 3600 * money.USD}
	n := nodeWithMachine(t, "n", "m1", 50)
	n.Offering, n.BilledFrom, n.BilledUntil = source, secondsAfter(0), secondsAfter(10)
	rows := audit.Rows{Nodes: []node.Node{n},
		Orphans: []ledger.Orphan{{Machine: "m2", Source: source, BilledFrom: secondsAfter(0),
			BilledUntil: secondsAfter(5)}}}
	right := []site.Machine{
		{ID: "m1", Node: "n", From: secondsAfter(0), To: secondsAfter(10), Cost: 10 * money.USD},
		{ID: "m2", From: secondsAfter(0), To: secondsAfter(5), Cost: 5 * money.USD},
	}
	require.Empty(t, rows.Accounts(right))
	require.Len(t, rows.Accounts(right[:1]), 1, "an account that the bill lacks")
	require.Len(t, rows.Accounts(append(right, site.Machine{ID: "m3", Cost: 1})), 1,
		"a machine that nobody accounts for")
	right[0].Cost++
	require.Equal(t,
		[]string{"machine m1 of node n, billed 10.000001 from 06:00:00.000 to 06:00:10.000, is in the ledger as " +
			"10.000000 of node n"},
		rows.Accounts(right))
	rows.Orphans = append(rows.Orphans, ledger.Orphan{Machine: "m1", Source: source, BilledFrom: secondsAfter(0),
		BilledUntil: secondsAfter(1)})
	require.Contains(t, rows.Accounts(right)[0], "10.000000 of node n and 1.000000 of orphan")
}

func TestWorkThatTheCloudDidNotTake(t *testing.T) {
	t.Parallel()
	rows := audit.Rows{
		Rows: invariants.Rows{OverAllocations: []allocation.Allocation{heldAllocation(t, "alc_1", "a",
			allocation.Activate,
			allocation.Fail)}},
		Nodes: []node.Node{nodeWithMachine(t, "nod_1", "m1", 50)},
	}
	require.Empty(t, rows.TakenAway(func(machine string) bool { return machine == "m1" }))
	require.Len(t, rows.TakenAway(func(string) bool { return false }), 1)
}
