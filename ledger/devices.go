package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// DeviceState is what can be done with a GPU now.
type DeviceState string

// The states of a device.
const (
	DeviceFree   DeviceState = "free"
	DeviceHeld   DeviceState = "held"   // by an allocation
	DeviceBooked DeviceState = "booked" // kept for a booking that is due
	DeviceComing DeviceState = "coming" // of a node that is on its way
	// DeviceUnavailable is of a node that takes no work or has no slot any more, of a
	// pool that recovers, or being cleaned.
	DeviceUnavailable DeviceState = "unavailable"
)

// Device is one GPU of a live node and what becomes of it.
type Device struct {
	capacity.Device // of a node on its way: only what its pool promises
	Node            node.Node
	State           DeviceState
	Holder          *allocation.Allocation // nil: none, or not to be seen
}

// Counts are the GPUs of a pool's live nodes by state.
type Counts struct{ Free, Held, Booked, Coming, Unavailable int }

// CountDevices counts devices by state.
func CountDevices(all []Device) Counts {
	var c Counts
	for _, d := range all {
		switch d.State {
		case DeviceFree:
			c.Free++
		case DeviceHeld:
			c.Held++
		case DeviceBooked:
			c.Booked++
		case DeviceComing:
			c.Coming++
		case DeviceUnavailable:
			c.Unavailable++
		}
	}
	return c
}

// Devices lists the GPUs of the pool's live nodes by node, then by index. Which of
// the devices that nobody holds a booking gets is not decided before it starts:
// those that come first count as booked.
func (s PoolState) Devices(now time.Time) []Device {
	holders := map[string]*allocation.Allocation{}
	due := map[int]int{} // GPUs of a slot that are kept
	for i, a := range s.Allocations {
		for _, d := range a.Devices {
			holders[d.UUID] = &s.Allocations[i]
		}
		if a.State() == allocation.Pending {
			keepFirst(due, a.Slots, a.Shape.PerNode)
		}
	}
	for _, r := range s.Reservations {
		if r.State() == reservation.Warming || r.State() == reservation.Ready {
			keepFirst(due, r.Slots, r.Shape.PerNode)
		}
	}
	dirty := map[string]bool{}
	cleaned, _ := learned.Cleaned(s.Pool.Cleaning, s.Pool.Timers.Cleaning, now)
	for _, c := range cleaned {
		for _, uuid := range c.UUIDs {
			dirty[uuid] = true
		}
	}
	var out []Device
	for _, n := range s.Nodes {
		for _, d := range s.devicesOf(n) {
			x := Device{Device: d, Node: n, Holder: holders[d.UUID], State: DeviceFree}
			switch {
			case x.Holder != nil:
				x.State = DeviceHeld
			case n.Coming():
				x.State = DeviceComing
			case n.State() != node.Ready || dirty[d.UUID]:
				x.State = DeviceUnavailable
			case due[n.Slot] > 0:
				due[n.Slot]--
				x.State = DeviceBooked
			case n.Slot >= s.Pool.MaxNodes || s.Pool.Recovery.Active():
				x.State = DeviceUnavailable
			}
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(x, y Device) int {
		return cmp.Or(cmp.Compare(x.Node.ID, y.Node.ID), cmp.Compare(x.Index, y.Index), cmp.Compare(x.UUID, y.UUID))
	})
	return out
}

func keepFirst(due map[int]int, slots []int, gpus int) {
	for _, slot := range slots {
		due[slot] += gpus
	}
}

// devicesOf are the devices that a node reported; of one on its way those that its
// pool promises, without their UUIDs.
func (s PoolState) devicesOf(n node.Node) []capacity.Device {
	if len(n.Devices) > 0 || !n.Coming() {
		return n.Devices
	}
	out := make([]capacity.Device, s.Pool.PerNode)
	for i := range out {
		out[i] = capacity.Device{Index: i / s.Pool.Shares(), Model: s.Pool.Model, MemoryMiB: s.Pool.MemoryMiB}
	}
	return out
}
