package ledgertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// day is a date of the past that stored times count from.
var day = time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC)

// Fixtures set every field, each to a value of its own, so that a column that is
// forgotten or mixed up shows.

func newOrganization(id string) ledger.Organization {
	return ledger.Organization{
		ID: id, Name: "name of " + id, CreatedAt: day,
		Limits: quota.Limits{
			GPUs: 64, SpeculationPerDay: 7 * money.USD, GPUMemoryMiB: quota.AtMost(1), CPUs: quota.AtMost(2),
			MemoryMiB: quota.AtMost(3), Bookings: quota.AtMost(0),
			Cohort: "research", Borrowing: quota.Bounds{quota.GPUs: quota.AtMost(4)},
			Lending: quota.Bounds{quota.Bookings: quota.AtMost(5)},
			Period:  quota.PerMonth, GPUHours: quota.AtMost(6), MoneyPerPeriod: quota.AtMost(7), Weight: 8,
		},
	}
}

func newUser(id, org string) ledger.User {
	return ledger.User{
		ID: id, OrganizationID: org, Email: id + "@example.org", Role: ledger.Admin, Active: true, CreatedAt: day,
		Caps: quota.Caps{MaxGPUs: 9, MaxPerDay: 6 * money.USD, MaxLead: 3 * time.Hour, MaxWindow: 4 * time.Hour,
			GPUHoursPerDay: quota.AtMost(5)},
	}
}

func newKey(id, org string) ledger.Key {
	return ledger.Key{
		ID: id, OrganizationID: org, UserID: "usr_1", Name: "laptop", Kind: ledger.AgentKey, Role: ledger.Member,
		Caps: quota.Caps{MaxGPUs: 8, MaxPerDay: 5 * money.USD, MaxLead: time.Hour, MaxWindow: 2 * time.Hour,
			GPUHoursPerDay: quota.AtMost(0)},
		Hash: []byte{1, 0, 255}, PepperVersion: 3, Last4: "wxyz", CreatedBy: "key_0", ParentID: "key_0", CreatedAt: day,
		ExpiresAt: day.Add(time.Microsecond), RevokedAt: day.Add(2 * time.Microsecond),
		LastUsedAt: day.Add(3 * time.Microsecond),
	}
}

func newPool(id string) ledger.Pool {
	return ledger.Pool{
		Pool: capacity.Pool{
			ID: id, Name: "name of " + id, Provisioner: "sim", Region: "eu", Type: "p4d", Model: "a100-80g",
			PerNode: 4, MemoryMiB: 81920, NodeCPUs: 96, NodeMemoryMiB: 1 << 20, OnlineShare: 700, BorrowIdle: true,
			Price: 8 * money.USD, MinBilling: time.Minute, MinNodes: 1, MaxNodes: 16, MaxCreates: 5,
			CreateWindow: 7 * time.Minute, Paused: true, Simulated: true, DevicesOnly: true,
			Labels: map[string]string{"gen": "4", "net": ""}, Taints: []string{"leased"},
			Isolation: capacity.IsolationDevices, SharesPerGPU: 2, MinDriver: "535.104",
			Alternates: []capacity.Alternate{{
				Offering: capacity.Offering{Provisioner: "aws", Region: "us", Type: "p4d-spot", Price: 3 * money.USD,
					MinBilling: time.Second},
				Boot50: time.Minute, Boot95: time.Hour,
			}},
			Timers: capacity.Timers{WarmHold: time.Minute, IdleRelease: 2 * time.Minute, MaxLease: 3 * time.Hour,
				Cleaning: 4 * time.Minute, IdleWarn: 5 * time.Minute, IdleReclaim: 6 * time.Minute},
		},
		Learned:   newLearned(),
		Recovery:  ledger.Recovery{Since: day, Reason: "restored"},
		CreatedAt: day, Revision: 11, Changes: 10, DefinitionVersion: 12,
	}
}

func newLearned() learned.Learned {
	return learned.Learned{
		Boot: learned.BootTimes{Prior50: time.Second, Prior95: 2 * time.Second, Faded: 5,
			Seen: []time.Duration{3 * time.Microsecond, time.Minute}},
		Supply: learned.Supply{
			BlockedUntil: day.Add(time.Hour), Failures: 2, Blocks: 1, Unfit: "gpu_model", UnfitInRow: 2,
			Hours:   []learned.Odds{{Given: 1.5, Refused: 0.125, At: day}, {}},
			Created: learned.Window{{At: day, N: 1}, {At: day.Add(time.Minute), N: 2}},
			Removed: learned.Window{{At: day.Add(time.Second), N: 3}},
		},
		Arrivals: learned.Arrivals{Until: day, Open: 0.25, Taken: []float64{1.25, 0}, Hours: []float64{2.5, 1}},
		Leases:   learned.LeaseUse{Seen: []time.Duration{1, 1000000}},
		Cleaning: []learned.Cleaning{{ID: "alc_1", Since: day, Slots: []int{0, 2}, GPUs: 1,
			UUIDs: []string{"GPU-1", "GPU-2"}, Await: []string{"nod_1"}, GivenUp: []string{"nod_2"}}},
		Rooms: []learned.Room{{For: "job_1", Since: day, GiveUp: day.Add(time.Minute), Until: day.Add(time.Hour),
			Slots: []int{1}, GPUs: 2, Short: 1, From: []string{"alc_1"}}},
		Sources: map[string]learned.SourceLearned{"aws/us/p4d-spot": {
			Boot: learned.BootTimes{Prior50: time.Second, Prior95: time.Minute, Faded: 1,
				Seen: []time.Duration{time.Second}},
			Supply: learned.Supply{BlockedUntil: day, Failures: 1, Blocks: 1,
				Hours: []learned.Odds{{Given: 1, At: day}}},
		}},
	}
}

// readyNode returns a node that became ready at a time, with its devices.
func readyNode(w *world, id, poolID string, slot int, at time.Time) node.Node {
	w.Helper()
	n := node.New(id, poolID, slot, 1, at.Add(-time.Minute))
	n.Token, n.ProviderID, n.Address, n.Simulated = "token of "+id, "provider's "+id, "10.0.0.1", true
	n.Offering, n.BilledFrom = poolOffering(), at.Add(-30*time.Second)
	for i := range 4 {
		n.Devices = append(n.Devices, capacity.Device{UUID: gpuUUID(id, i), Index: i, Model: "A100", MemoryMiB: 81920})
	}
	return applyEvents(w, n, at.Add(-30*time.Second), node.Provision, node.Boot, node.BecomeReady)
}

func poolOffering() capacity.Offering { return newPool("").Offering() }

func gpuUUID(nodeID string, i int) string { return fmt.Sprintf("GPU-%s-%d", nodeID, i) }

// statefulValue is what nodes, reservations and allocations have in common.
type statefulValue[M any, E any] interface {
	Apply(event E, reason string, now time.Time) (M, error)
}

// applyEvents applies events in turn.
func applyEvents[M statefulValue[M, E], E any](w *world, m M, at time.Time, events ...E) M {
	w.Helper()
	for _, e := range events {
		var err error
		m, err = m.Apply(e, "test", at)
		require.NoError(w, err)
	}
	return m
}

// fullNode returns a node with every field set.
func fullNode(w *world, id, poolID string, slot int) node.Node {
	w.Helper()
	n := readyNode(w, id, poolID, slot, day)
	n = applyEvents(w, n, day.Add(time.Hour), node.Drain, node.Retire, node.Confirm)
	n.AbsentAt, n.BilledUntil, n.ExpiresAt = day.Add(50*time.Minute), day.Add(49*time.Minute), day.Add(24*time.Hour)
	n.Taken = node.TakenByWork
	n.Labels, n.Taints = map[string]string{"disk": "nvme", "rack": ""}, []string{"licensed", "old"}
	n.Heat = node.Heat{Celsius: 86, HotUntil: day.Add(2 * time.Hour)}
	n.Isolation = capacity.IsolationUser
	n.Quarantine = node.Quarantines{Kept: true, Resuming: true, Why: "its fans rattle", WarnedAt: day}
	n.Quarantine.Spans = []calendar.Interval{
		{Start: day, End: day.Add(time.Minute)}, {Start: day.Add(time.Hour)},
	}
	return n
}

// bookedReservation returns a reservation with a place, and with every field set
// that a live one can have.
func bookedReservation(w *world, id, org, poolID string, start time.Time) reservation.Reservation {
	w.Helper()
	r, err := reservation.New(reservation.Reservation{
		ID: id, OrganizationID: org, PoolID: poolID, Name: "nightly", Class: reservation.Speculative,
		Origin: reservation.FromAgent, MadeBy: "key_1", UserID: "usr_1", Workload: capacity.Batch,
		Window: calendar.Interval{Start: start, End: start.Add(time.Hour)},
		Shape:  capacity.Shape{Nodes: 2, PerNode: 4, Short: 3},
		Slots:  []int{3, 1}, ReasonCode: "pattern.weekday", Probability: 0.8125, Degraded: true, Reason: "fits",
		Cost: 16 * money.USD, ForJobs: reservation.OwnJobs, JobID: "job_1", PartOf: "rsv_1", Awaits: "alc_1",
	}, reservation.Booked, day)
	require.NoError(w, err)
	return r
}

// fullReservation returns a reservation with every field set.
func fullReservation(w *world, id, org, poolID string) reservation.Reservation {
	w.Helper()
	r := bookedReservation(w, id, org, poolID, day.Add(time.Hour))
	return applyEvents(w, r, day.Add(2*time.Hour), reservation.Warm, reservation.BecomeReady, reservation.Claim)
}

// pendingAllocation returns an allocation that has a place and holds nothing yet.
func pendingAllocation(id, org, poolID string, at time.Time) allocation.Allocation {
	return allocation.New(allocation.Allocation{
		ID: id, OrganizationID: org, PoolID: poolID, Name: "training", HeldBy: "key_1", UserID: "usr_1",
		Workload: capacity.Batch,
		Shape:    capacity.Shape{Nodes: 1, PerNode: 2}, Slots: []int{2}, Reservations: []string{"rsv_2", "rsv_1"},
		Opened: []string{"nod_1"},
		Lease:  time.Hour, Window: calendar.Interval{Start: at, End: at.Add(time.Hour)}, Reason: "warm",
		Cost: 4 * money.USD, IdleWarnedAt: day.Add(9 * time.Minute),
	}, at)
}

// activeAllocation returns an allocation that holds some GPUs of a node.
func activeAllocation(w *world, id, org string, n node.Node, at time.Time, gpus ...int) allocation.Allocation {
	w.Helper()
	a := pendingAllocation(id, org, n.PoolID, at)
	a.Shape = capacity.Shape{Nodes: 1, PerNode: len(gpus)}
	for _, i := range gpus {
		a.Devices = append(a.Devices, allocation.Held{NodeID: n.ID, UUID: gpuUUID(n.ID, i)})
	}
	return applyEvents(w, a, at, allocation.Activate)
}

// releasedAllocation returns the allocation after its release.
func releasedAllocation(w *world, a allocation.Allocation, at time.Time) allocation.Allocation {
	w.Helper()
	return applyEvents(w, a, at, allocation.Release, allocation.Finish)
}

func newSchedule(id, org, poolID string) ledger.Schedule {
	return ledger.Schedule{
		ID: id, OrganizationID: org, PoolID: poolID, Name: "weekdays", GPUs: 4, StartLocal: "2026-03-02T09:00:00",
		Timezone: "Europe/Berlin", RRule: "FREQ=WEEKLY;BYDAY=MO,TU", ExDates: []string{"2026-03-09", "2026-03-10"},
		Length: 3 * time.Hour, DSTPolicy: "shift", Paused: true, MadeBy: "key_1", CreatedAt: day,
		DoneUntil: day.Add(time.Hour), DeletedAt: day.Add(2 * time.Hour),
	}
}

func newEvent(org, subject string) ledger.Event {
	return ledger.Event{
		OrganizationID: org, At: day, Type: "node.ready", Subject: subject, PoolID: "pol_1", Actor: "planner",
		Via: "worker", Reason: "boot", Message: "The node is ready.",
	}
}

func newPause(org string) ledger.Pause {
	return ledger.Pause{OrganizationID: org, Reason: "stocktaking", By: "key_1", At: day, Until: day.AddDate(100, 0, 0)}
}

func newTask(id string, at time.Time) ledger.Task {
	return ledger.Task{
		ID: id, Kind: ledger.TaskCheckNode, Subject: "nod_1", State: ledger.TaskReady, RunAt: at, CreatedAt: day,
	}
}

func newReplay(owner, key string) ledger.Replay {
	return ledger.Replay{
		Owner: owner, Route: "POST /v1/reservations", Key: key, Hash: []byte{9, 0}, Status: 201,
		Body: []byte(`{"id":"rsv_1"}`), CreatedAt: day,
	}
}

// saveGround saves two organizations, two pools and a ready node on slot 0 of the
// first pool, and returns the node.
func saveGround(w *world) node.Node {
	w.Helper()
	n := readyNode(w, "nod_1", "pol_1", 0, day)
	w.mustSave(ledger.Change{
		Organizations: []ledger.Organization{newOrganization("org_1"), newOrganization("org_2")},
		Pools:         []ledger.Pool{newPool("pol_1"), newPool("pol_2")},
		Nodes:         []node.Node{n},
	})
	return n
}
