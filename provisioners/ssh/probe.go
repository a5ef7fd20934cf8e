package ssh

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
)

// leastMemory is the share of the configured memory, in percent, that a GPU must
// report. Drivers keep some of it for themselves, ECC takes more.
const leastMemory = 90

// seen is a GPU as the probe shows it.
type seen struct {
	capacity.Device
	name string // the driver's
	ecc  uint64 // uncorrected errors
}

// judgeDevices returns the GPUs that are fit and what is wrong with the machine, empty
// for nothing. A GPU that is not fit is left out, so that the health gate counts
// too few: a machine that is failing is not handed out.
func (r report) judgeDevices(h Host) ([]capacity.Device, string) {
	if r.probe != "0" {
		return nil, fmt.Sprintf("the probe ended with %s: %.200s", r.probe, strings.Join(r.gpus, " / "))
	}
	var devices []capacity.Device
	var faults []string
	for _, line := range r.gpus {
		if strings.TrimSpace(line) == "" {
			continue
		}
		found, err := parseRow(line)
		if err != nil {
			faults = append(faults, fmt.Sprintf("the probe's row %.200q: %v", line, err))
			continue
		}
		if fault := found.faultText(h); fault != "" {
			faults = append(faults, found.UUID+" "+fault)
			continue
		}
		found.Model = h.Model
		devices = append(devices, found.Device)
	}
	if len(devices) != h.GPUs {
		faults = append(faults, fmt.Sprintf("%d of %d GPUs are fit", len(devices), h.GPUs))
	}
	slices.SortFunc(devices, func(a, b capacity.Device) int { return a.Index - b.Index })
	return devices, strings.Join(faults, "; ")
}

func (s seen) faultText(h Host) string {
	switch {
	case s.ecc > 0:
		return fmt.Sprintf("has %d uncorrected ECC errors", s.ecc)
	case h.GPUName != "" && s.name != h.GPUName:
		return fmt.Sprintf("is %q, not %q", s.name, h.GPUName)
	case s.MemoryMiB > 0 && s.MemoryMiB < h.MemoryMiB*leastMemory/100:
		return fmt.Sprintf("has %d MiB, not %d", s.MemoryMiB, h.MemoryMiB)
	}
	return ""
}

// parseRow reads uuid, index, name, memory, errors; the name alone may hold a
// comma. What a GPU does not have is in brackets: "[N/A]".
func parseRow(line string) (seen, error) {
	fields := strings.Split(line, ",")
	last := len(fields) - 1
	if last < 4 {
		return seen{}, fmt.Errorf("want 5 fields, have %d", len(fields))
	}
	s := seen{name: strings.TrimSpace(strings.Join(fields[2:last-1], ","))}
	s.UUID = strings.TrimSpace(fields[0])
	if !strings.HasPrefix(s.UUID, "GPU-") && !strings.HasPrefix(s.UUID, "MIG-") {
		return seen{}, fmt.Errorf("%q is not the UUID of a GPU", s.UUID)
	}
	index, err := strconv.ParseUint(strings.TrimSpace(fields[1]), 10, 16)
	if err != nil {
		return seen{}, fmt.Errorf("index: %w", err)
	}
	memory, err := parseNumber(fields[last-1])
	if err != nil {
		return seen{}, fmt.Errorf("memory: %w", err)
	}
	if s.ecc, err = parseNumber(fields[last]); err != nil {
		return seen{}, fmt.Errorf("ECC errors: %w", err)
	}
	s.Index, s.MemoryMiB = int(index), int(memory)
	return s, nil
}

func parseNumber(field string) (uint64, error) {
	field = strings.TrimSpace(field)
	if strings.HasPrefix(field, "[") {
		return 0, nil
	}
	return strconv.ParseUint(field, 10, 31)
}
