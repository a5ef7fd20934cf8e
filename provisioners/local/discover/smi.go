package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// SMI asks the nvidia-smi command. Command is the program and its first
// arguments, nvidia-smi when empty. Timeout bounds one call, 20 s when zero: a
// broken driver makes it hang, and a cold one takes seconds to start.
type SMI struct {
	Command []string
	Timeout time.Duration
}

const smiTimeout = 20 * time.Second

// The name comes last because it alone may hold a comma.
var smiQuery = []string{"--query-gpu=index,uuid,memory.total,ecc.errors.uncorrected.volatile.total,name",
	"--format=csv,noheader,nounits"}

// Devices lists the GPUs.
func (s SMI) Devices(ctx context.Context) ([]capacity.Device, error) {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = smiTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	output, err := s.run(ctx, smiQuery...)
	if err != nil || bytes.Contains(output, []byte("No devices were found")) {
		return nil, err
	}
	devices, err := parseSMI(string(output))
	if err != nil {
		return nil, err
	}
	list, err := s.run(ctx, "-L")
	if err != nil {
		return nil, err
	}
	return numberParts(divide(devices, string(list))), nil
}

// run runs the command. That it finds no devices is no error.
func (s SMI) run(ctx context.Context, args ...string) ([]byte, error) {
	command := s.Command
	if len(command) == 0 {
		command = []string{"nvidia-smi"}
	}
	run := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], args...)...)
	run.WaitDelay = time.Second // a child of the killed command may keep its pipes open
	output, err := run.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("asking nvidia-smi: %w", ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%w: neither the NVML library nor nvidia-smi is there", ErrNoDriver)
	case bytes.Contains(output, []byte("communicate with the NVIDIA driver")):
		return nil, fmt.Errorf("%w: nvidia-smi cannot talk to it", ErrNoDriver)
	case bytes.Contains(output, []byte("No devices were found")):
		return output, nil
	case err != nil:
		return nil, fmt.Errorf("asking nvidia-smi: %w: %.200s", err, bytes.TrimSpace(output))
	}
	return output, nil
}

// The lines of nvidia-smi -L, as "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c8…)" and, below, of each of its MIG
// devices, "  MIG 1g.10gb     Device  0: (UUID: MIG-c6d…)".
var (
	listedGPU  = regexp.MustCompile(`^GPU \d+: .*\(UUID: (GPU-[^)]+)\)`)
	listedPart = regexp.MustCompile(`^\s+MIG (\S*?(\d+)gb\S*)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)`)
)

// divide puts MIG devices in the place of the GPUs that a list says are divided.
func divide(devices []capacity.Device, list string) []capacity.Device {
	parts, gpu := map[string][]capacity.Device{}, ""
	for line := range strings.Lines(list) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			gpu = m[1]
		} else if m := listedPart.FindStringSubmatch(line); m != nil {
			gigabytes, _ := strconv.Atoi(m[2])
			parts[gpu] = append(parts[gpu], capacity.Device{UUID: m[3], Model: "MIG " + m[1], MemoryMiB: gigabytes << 10})
		}
	}
	var all []capacity.Device
	for _, d := range devices {
		if len(parts[d.UUID]) == 0 {
			all = append(all, d)
		}
		for _, part := range parts[d.UUID] {
			part.Index, part.Model = d.Index, d.Model+" "+part.Model // as NVIDIA's library names it
			all = append(all, part)
		}
	}
	return all
}

func parseSMI(output string) ([]capacity.Device, error) {
	var devices []capacity.Device
	for line := range strings.Lines(output) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		device, damaged, err := parseRow(line)
		if err != nil {
			return nil, fmt.Errorf("reading nvidia-smi's row %.200q: %w", line, err)
		}
		if !damaged {
			devices = append(devices, device)
		}
	}
	return devices, nil
}

func parseRow(line string) (device capacity.Device, damaged bool, err error) {
	fields := strings.SplitN(line, ",", 5)
	if len(fields) != 5 {
		return capacity.Device{}, false, fmt.Errorf("want 5 fields, have %d", len(fields))
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	index, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil {
		return capacity.Device{}, false, fmt.Errorf("index: %w", err)
	}
	if !strings.HasPrefix(fields[1], "GPU-") {
		return capacity.Device{}, false, fmt.Errorf("%q is not the UUID of a GPU", fields[1])
	}
	memory, err := parseCount(fields[2], 31)
	if err != nil { // without a figure, the GPU shares the host's memory
		return capacity.Device{}, false, fmt.Errorf("memory: %w", err)
	}
	uncorrected, err := parseCount(fields[3], 64)
	if err != nil {
		return capacity.Device{}, false, fmt.Errorf("memory errors: %w", err)
	}
	if fields[4] == "" || strings.HasPrefix(fields[4], "[") {
		return capacity.Device{}, false, fmt.Errorf("%q is not a name", fields[4])
	}
	return capacity.Device{UUID: fields[1], Index: int(index), Model: fields[4], MemoryMiB: int(memory)},
		uncorrected > 0,
		nil //nolint:gosec // 31 bits
}

// parseCount reads a number. "[N/A]" and "[Not Supported]", where the GPU has no such
// figure, count as none.
func parseCount(field string, bits int) (uint64, error) {
	if strings.HasPrefix(field, "[") {
		return 0, nil
	}
	return strconv.ParseUint(field, 10, bits)
}
