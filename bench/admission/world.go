package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

const (
	nodes    = 1250
	perNode  = 8
	days     = 30
	members  = 4 // organizations of the cohort
	requests = 20_000
)

var begin = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// world is a booked pool and requests for it.
type world struct {
	bookings int
	load     float64 // part of the pool's GPU-time that is booked
	view     admission.View
	requests []admission.Request
	accepted []admission.Request
}

// shapes are drawn evenly from this list.
var shapes = []capacity.Shape{
	{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 2}, {Nodes: 1, PerNode: 4}, {Nodes: 1, PerNode: 8},
	{Nodes: 1, PerNode: 8},
	{Nodes: 1, PerNode: 8}, {Nodes: 2, PerNode: 8}, {Nodes: 2, PerNode: 8}, {Nodes: 4, PerNode: 8},
	{Nodes: 4, PerNode: 8},
}

// newWorld books a pool. Windows are 10 minutes to a day long; shorter makes
// them so many times shorter, so that ten times the bookings are the same load.
func newWorld(bookings, shorter int) *world {
	rng := rand.New(rand.NewPCG(uint64(bookings), 1))
	w := &world{bookings: bookings, view: emptyView()}
	draw := func() (capacity.Shape, calendar.Interval) {
		length := (10*time.Minute + time.Duration(rng.Int64N(int64(24*time.Hour)))) / time.Duration(shorter)
		start := begin.Add(time.Duration(rng.Int64N(int64(days*24*time.Hour - length))).Truncate(time.Second))
		return shapes[rng.IntN(len(shapes))], calendar.Interval{Start: start,
			End: start.Add(length.Truncate(time.Second))}
	}
	for placed := 0; placed < bookings; {
		shape, iv := draw()
		if slots, ok := w.view.Slots.Find(shape, iv, nil); ok {
			w.addBooking(placed, shape, calendar.Booking{ID: fmt.Sprint(placed), Interval: iv, Slots: slots,
				GPUs: shape.PerNode})
			placed++
		}
	}
	for range requests {
		shape, iv := draw()
		class := []reservation.Class{reservation.Guaranteed, reservation.Speculative}[rng.IntN(2)]
		workload := []capacity.Workload{capacity.Online, capacity.Batch}[rng.IntN(2)]
		w.requests = append(w.requests, admission.Request{Class: class, Workload: workload, Shape: shape, Window: iv})
	}
	return w
}

// addBooking places a booking and counts it for one of the cohort, in turn, for the
// key and the user that ask, and for a workload.
func (w *world) addBooking(i int, shape capacity.Shape, b calendar.Booking) {
	v := &w.view
	v.Slots.Force(b)
	gpuTime := time.Duration(shape.GPUs()) * b.Interval.Length()
	w.load += gpuTime.Hours() / (nodes * perNode * days * 24)
	v.Used[[]capacity.Workload{capacity.Online, capacity.Batch}[i%2]].Add(b.Interval, shape.GPUs())
	cost := admission.Cost(v.Pool, shape, b.Interval.Length())
	demand, spend := quota.Demand(v.Pool, shape), quota.SpendOf(b.Interval, shape.GPUs(), cost)
	switch of := i % members; of {
	case 0:
		for _, c := range []*quota.Commitments{v.Committed, v.SpeculativeCommitments, v.User.Spent,
			v.Key.Spent}[:1+i/members%4] {
			c.Add(b.Interval, demand, spend)
		}
	default:
		v.Cohort[of-1].Committed.Add(b.Interval, demand, spend)
	}
}

// emptyView has limits of every kind, wide enough that most requests are within
// them.
func emptyView() admission.View {
	limits := quota.Limits{
		GPUs: 2_000, GPUMemoryMiB: quota.AtMost(1 << 40), CPUs: quota.AtMost(1 << 40), MemoryMiB: quota.AtMost(1 << 40),
		Bookings:          quota.AtMost(1 << 20),
		SpeculationPerDay: 10_000_000 * money.USD, Cohort: "all",
		Borrowing: quota.Bounds{quota.GPUs: quota.AtMost(4_000)},
		Lending:   quota.Bounds{quota.GPUs: quota.AtMost(1_500)}, Period: quota.PerMonth,
		GPUHours: quota.AtMost(10_000_000), MoneyPerPeriod: quota.AtMost(int64(1_000_000_000 * money.USD)), Weight: 1,
	}
	caps := quota.Caps{MaxGPUs: 5_000, MaxPerDay: 10_000_000 * money.USD, MaxLead: 40 * 24 * time.Hour,
		MaxWindow: 48 * time.Hour, GPUHoursPerDay: quota.AtMost(1_000_000)}
	v := admission.View{
		Now: begin, Limits: limits, Committed: &quota.Commitments{}, SpeculativeCommitments: &quota.Commitments{},
		Key:  admission.Capped{Caps: &caps, Spent: &quota.Commitments{}},
		User: admission.Capped{Caps: &caps, Spent: &quota.Commitments{}},
		Buf:  make([]int, 0, nodes),
		PoolView: admission.PoolView{
			Pool: capacity.Pool{
				ID: "pol", Name: "h100", PerNode: perNode, MaxNodes: nodes, MemoryMiB: 81_920, NodeCPUs: 192,
				NodeMemoryMiB: 2 << 20,
				Price:         24 * money.USD, OnlineShare: 600, Timers: capacity.Timers{MaxLease: 7 * 24 * time.Hour},
			},
			Slots: calendar.NewSlots(nodes, perNode),
			Used:  map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}},
		},
	}
	for range members - 1 {
		v.Cohort = append(v.Cohort, quota.Member{Limits: limits, Committed: &quota.Commitments{}})
	}
	return v
}
