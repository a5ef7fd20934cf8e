package gpu

import (
	"cmp"
	"slices"
)

// throttles are the driver's bits for why clocks are low, without idling, which is no
// reason to look twice.
var throttles = []struct {
	bit  uint64
	name string
}{
	{2, "applications_clocks"}, {4, "power_cap"}, {8, "hardware_slowdown"}, {16, "sync_boost"},
	{32, "software_thermal"}, {64, "hardware_thermal"}, {128, "hardware_power_brake"}, {256, "display_clocks"},
}

// HardwareThrottles are the reasons that say that the hardware protects itself.
var HardwareThrottles = []string{"hardware_slowdown", "hardware_thermal", "hardware_power_brake"}

func throttleReasons(bits uint64) []string {
	var all []string
	for _, t := range throttles {
		if bits&t.bit != 0 {
			all = append(all, t.name)
		}
	}
	return all
}

// countEvents lists merged events in a fixed order.
func countEvents(merged map[Event]int) []Event {
	var all []Event
	for e, n := range merged {
		e.Count = n
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.UUID+a.PCI, b.UUID+b.PCI), cmp.Compare(a.Code, b.Code))
	})
	return all
}
