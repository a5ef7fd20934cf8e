package capacity

import (
	"strconv"
	"strings"
)

// shareMark stands between the UUID of a GPU and the number of a share of it, as in the names that NVIDIA's device
// plugin for Kubernetes gives to replicas of a GPU.
const shareMark = "::"

// Shares is how many bookings may have one GPU of the pool at once.
func (p Pool) Shares() int { return max(1, p.SharesPerGPU) }

// Units are what the pool books of devices that a machine has: the devices, or the shares of each of them, which have
// names of their own, and as much of its memory as the others.
func (p Pool) Units(devices []Device) []Device {
	n := p.Shares()
	if n == 1 {
		return devices
	}
	units := make([]Device, 0, len(devices)*n)
	for _, d := range devices {
		for i := range n {
			unit := d
			unit.MemoryMiB = d.MemoryMiB / n
			if d.UUID != "" {
				unit.UUID = d.UUID + shareMark + strconv.Itoa(i)
			}
			units = append(units, unit)
		}
	}
	return units
}

// ShareOf is the number of a share of a GPU; false: the unit is a GPU.
func ShareOf(unit string) (number int, ok bool) {
	_, text, ok := strings.Cut(unit, shareMark)
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}

// GPUOf is the UUID of the GPU that a unit is, or is a share of.
func GPUOf(unit string) string {
	gpu, _, _ := strings.Cut(unit, shareMark)
	return gpu
}
