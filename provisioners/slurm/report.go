package slurm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
)

// report is what a placeholder found on its node: nothing as long as its probe
// has not passed. Devices carry the names that the probe gave them; unprobed
// ones have only indexes.
type report struct {
	devices   []capacity.Device
	unprobed  bool
	eccErrors int
}

// parseReport reads "g" (index:UUID:MiB:errors, …) with "m" (the name of the
// GPUs), or "u" (index, …), which placeholder.sh writes.
func parseReport(values url.Values) (report, error) {
	var found report
	if indexes := values.Get("u"); indexes != "" {
		found.unprobed = true
		for text := range strings.SplitSeq(indexes, ",") {
			index, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return report{}, fmt.Errorf("the index of a GPU: %w", err)
			}
			found.devices = append(found.devices, capacity.Device{Index: int(index)})
		}
		return found, nil
	}
	devices := values.Get("g")
	if devices == "" {
		return report{}, nil
	}
	for text := range strings.SplitSeq(devices, ",") {
		device, errors, err := parseDevice(text)
		if err != nil {
			return report{}, fmt.Errorf("GPU %.80q: %w", text, err)
		}
		device.Model = values.Get("m")
		found.devices = append(found.devices, device)
		found.eccErrors += errors
	}
	return found, nil
}

func parseDevice(text string) (device capacity.Device, eccErrors int, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 || parts[1] == "" {
		return capacity.Device{}, 0, fmt.Errorf("want index, UUID, memory and errors, have %d parts", len(parts))
	}
	var numbers [3]int
	for i, part := range []string{parts[0], parts[2], parts[3]} {
		number, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return capacity.Device{}, 0, err
		}
		numbers[i] = int(number)
	}
	return capacity.Device{UUID: "GPU-" + parts[1], Index: numbers[0], MemoryMiB: numbers[1]}, numbers[2], nil
}

// devicesOf gives a job's GPUs the model that they are offered as, where the
// probe does not contradict.
func (c *Cluster) devicesOf(j job) []capacity.Device {
	offer, _ := c.config.findOffer(j.tags.kind)
	devices := make([]capacity.Device, len(j.found.devices))
	for i, device := range j.found.devices {
		if j.found.unprobed {
			device.UUID, device.MemoryMiB, device.Model = c.config.unprobedUUID(j.node, device.Index), offer.MemoryMiB,
				offer.Model
		}
		if offer.Model != "" && strings.Contains(strings.ToLower(device.Model), strings.ToLower(offer.NameContains)) {
			device.Model = offer.Model
		}
		devices[i] = device
	}
	return devices
}

// unprobedUUID is made up, and the same for the same GPU of the same node.
func (c Config) unprobedUUID(node string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", c.Name, node, index))
	return "GPU-UNPROBED-" + hex.EncodeToString(sum[:12])
}
