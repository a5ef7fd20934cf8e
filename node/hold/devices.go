package hold

import (
	"maps"
	"slices"

	"github.com/forewarm/forewarm/node/devicefilter"
)

// deviceNumbers are what is to be opened of a GPU, or of a MIG device.
type deviceNumbers struct {
	gpu          int  // N of /dev/nvidiaN
	divided      bool // it is a MIG device, which takes capabilities
	capabilities []int
}

// canBeKept reports whether the devices can be kept from those who hold none of them.
func (d deviceNumbers) canBeKept() bool { return !d.divided || len(d.capabilities) > 0 }

// tellApart reports whether the devices of all GPUs of a machine are known.
func tellApart(all map[string]deviceNumbers) bool {
	if len(all) == 0 {
		return false
	}
	for d := range maps.Values(all) {
		if !d.canBeKept() {
			return false
		}
	}
	return true
}

// findDevices notes what a hold may open. It is kept from others' if all of that is known, and the kernel can filter.
func (k *Keeper) findDevices(r *record) {
	r.Minors, r.Capabilities, r.Filtered = nil, nil, k.filters && len(r.GPUs) > 0
	for _, uuid := range r.GPUs {
		d, known := k.opens[uuid]
		if !known || !d.canBeKept() {
			r.Minors, r.Capabilities, r.Filtered = nil, nil, false
			return
		}
		if !slices.Contains(r.Minors, d.gpu) {
			r.Minors = append(r.Minors, d.gpu)
		}
		for _, c := range d.capabilities { // the devices of one GPU instance share one
			if !slices.Contains(r.Capabilities, c) {
				r.Capabilities = append(r.Capabilities, c)
			}
		}
	}
}

// devices are those of NVIDIA's that the work of a hold may open.
func (r *record) devices() devicefilter.Devices {
	d := devicefilter.Devices{GPUs: r.Minors, Capabilities: r.Capabilities}
	if len(d.Capabilities) > 0 {
		d.CapabilityMajor = devicefilter.MajorOf("nvidia-caps")
	}
	return d
}
