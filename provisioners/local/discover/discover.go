// Package discover finds the GPUs of this machine: through NVIDIA's management
// library where the program was built with cgo, else through nvidia-smi, or
// simulated ones on request.
package discover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
)

// Source lists the GPUs of one machine in the order of their indexes, and the MIG
// devices of those that are divided in their place. It leaves out those whose
// memory has had errors that it could not correct since the driver was loaded:
// nothing may be promised on them. It is safe for concurrent use.
type Source interface {
	Devices(ctx context.Context) ([]capacity.Device, error)
}

// numberParts gives devices indexes of their own where some are MIG devices, several of which are of one GPU.
func numberParts(devices []capacity.Device) []capacity.Device {
	if slices.ContainsFunc(devices, func(d capacity.Device) bool { return strings.HasPrefix(d.UUID, "MIG-") }) {
		for i := range devices {
			devices[i].Index = i
		}
	}
	return devices
}

// ErrNoDriver says that this machine has no working NVIDIA driver.
var ErrNoDriver = errors.New("no NVIDIA driver found on this machine")

// errNoLibrary says that NVML cannot be asked at all: the library is missing, or
// the program was built without cgo.
var errNoLibrary = errors.New("no NVML library")

// System returns the source for this machine's own GPUs.
func System() Source { return FirstOf{Library: NVML{}, Command: SMI{}} }

// FirstOf asks the library, and the command where there is no library.
type FirstOf struct {
	Library NVML
	Command SMI
}

// Devices lists the GPUs. The error is ErrNoDriver when neither source finds a
// driver.
func (f FirstOf) Devices(ctx context.Context) ([]capacity.Device, error) {
	devices, err := f.Library.Devices(ctx)
	if !errors.Is(err, errNoLibrary) {
		return devices, err
	}
	return f.Command.Devices(ctx)
}

// Simulated is a source of GPUs that do not exist. They keep their UUIDs for as
// long as the host keeps its id.
type Simulated struct {
	Host      string
	Count     int
	Model     string
	MemoryMiB int
}

// Devices lists the simulated GPUs.
func (s Simulated) Devices(ctx context.Context) ([]capacity.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	devices := make([]capacity.Device, s.Count)
	for i := range devices {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %d", s.Host, i))
		text := hex.EncodeToString(sum[:16])
		devices[i] = capacity.Device{
			UUID:  "GPU-SIM-" + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:],
			Index: i, Model: s.Model, MemoryMiB: s.MemoryMiB,
		}
	}
	return devices, nil
}
