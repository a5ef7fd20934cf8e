//go:build linux && cgo

package gpu

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// migMinors is the driver's list of the device that opens each MIG instance (NVIDIA MIG User Guide, "Device Nodes and
// Capabilities"): lines such as "gpu0/gi1/access 12".
const migMinors = "/proc/driver/nvidia-caps/mig-minors"

// capabilitiesOf are N of the /dev/nvidia-caps/nvidia-capN without which nobody can use a MIG device: that of its GPU
// instance and that of its compute instance. Nil: they are not known.
func capabilitiesOf(gpu, gpuInstance, computeInstance int) []int {
	text, err := os.ReadFile(migMinors)
	if err != nil {
		return nil
	}
	return parseCapabilities(string(text), gpu, gpuInstance, computeInstance)
}

func parseCapabilities(text string, gpu, gpuInstance, computeInstance int) []int {
	instance := fmt.Sprintf("gpu%d/gi%d/", gpu, gpuInstance)
	wanted := [2]string{instance + "access", fmt.Sprintf("%sci%d/access", instance, computeInstance)}
	var minors []int
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != wanted[0] && name != wanted[1] {
			continue
		}
		if minor, err := strconv.Atoi(number); err == nil {
			minors = append(minors, minor)
		}
	}
	if len(minors) != len(wanted) {
		return nil
	}
	return minors
}
