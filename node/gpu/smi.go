package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// SMI asks the nvidia-smi command. Command is the program and its first arguments,
// nvidia-smi when empty. Deadline bounds one call, 20 s when zero.
type SMI struct {
	Command  []string
	Deadline time.Duration

	hung atomic.Int32
}

// smiFields are asked for in this order. The name comes last because it alone may hold a
// comma.
var smiFields = []string{"index", "uuid", "pci.bus_id", "driver_version", "memory.total", "memory.used",
	"utilization.gpu", "utilization.memory", "temperature.gpu", "power.draw", "enforced.power.limit", "clocks.sm",
	"clocks.mem", "clocks_throttle_reasons.active", "ecc.errors.uncorrected.volatile.total",
	"ecc.errors.uncorrected.aggregate.total", "ecc.errors.corrected.volatile.total",
	"ecc.errors.corrected.aggregate.total", "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current",
	"pcie.link.width.max", "mig.mode.current", "name"}

// Look runs the command once. A run that does not end in time is left alone.
func (s *SMI) Look(ctx context.Context) (Reading, error) {
	if n := s.hung.Load(); n >= mostHung {
		return Reading{}, fmt.Errorf("the driver hangs: %d runs of nvidia-smi wait for it, and no other is started", n)
	}
	output, err := s.run(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return Reading{}, fmt.Errorf("%w: nvidia-smi is not there", ErrNoDriver)
	case bytes.Contains(output, []byte("communicate with the NVIDIA driver")):
		return Reading{}, fmt.Errorf("%w: nvidia-smi cannot talk to it", ErrNoDriver)
	case bytes.Contains(output, []byte("No devices were found")):
		return Reading{Look: contract.NodeLook{Source: FromSMI, GPUs: []contract.LookGPU{}}}, nil
	case err != nil:
		return Reading{}, fmt.Errorf("asking nvidia-smi: %w: %.200s", err, bytes.TrimSpace(output))
	}
	return parseSMI(string(output))
}

// Close has nothing to close.
func (s *SMI) Close() {}

// result is what a run of the command came to.
type result struct {
	output []byte
	err    error
}

func (s *SMI) run(ctx context.Context) ([]byte, error) {
	command, deadline := s.Command, s.Deadline
	if len(command) == 0 {
		command = []string{"nvidia-smi"}
	}
	if deadline == 0 {
		deadline = 20 * time.Second
	}
	args := append(command[1:len(command):len(command)], "--query-gpu="+strings.Join(smiFields, ","),
		"--format=csv,noheader,nounits")
	run := exec.Command(command[0], args...) //nolint:gosec,noctx // nvidia-smi, never killed: see SMI
	run.Env = DriverEnvironment()
	done := make(chan result, 1)
	s.hung.Add(1)
	go func() {
		output, err := run.CombinedOutput()
		s.hung.Add(-1)
		done <- result{output, err}
	}()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.output, r.err
	case <-timer.C:
		return nil, fmt.Errorf("it did not answer within %s", deadline)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func parseSMI(output string) (Reading, error) {
	r := Reading{Look: contract.NodeLook{Source: FromSMI, GPUs: []contract.LookGPU{}}}
	for line := range strings.Lines(output) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.SplitN(line, ",", len(smiFields))
		if len(fields) != len(smiFields) {
			return r, fmt.Errorf("reading nvidia-smi's row %.200q: want %d fields, have %d", line, len(smiFields),
				len(fields))
		}
		g, driver, err := parseRow(fields)
		if err != nil {
			return r, fmt.Errorf("reading nvidia-smi's row %.200q: %w", line, err)
		}
		r.Look.Driver = driver
		if g.MIG != nil && *g.MIG {
			r.Look.Problem = fmt.Sprintf("GPU %d is divided by MIG: only NVIDIA's library tells of its devices, which this "+
				"build of the daemon, or this machine, lacks", g.Index)
		}
		r.Look.GPUs = append(r.Look.GPUs, g)
	}
	return r, nil
}

func parseRow(fields []string) (contract.LookGPU, string, error) {
	at := map[string]string{}
	for i, name := range smiFields {
		at[name] = strings.TrimSpace(fields[i])
	}
	index, err := strconv.ParseUint(at["index"], 10, 12)
	if err != nil {
		return contract.LookGPU{}, "", fmt.Errorf("index: %w", err)
	}
	if !strings.HasPrefix(at["uuid"], "GPU-") {
		return contract.LookGPU{}, "", fmt.Errorf("%q is not the UUID of a GPU", at["uuid"])
	}
	g := contract.LookGPU{UUID: at["uuid"], Index: int(index), Model: at["name"], PCI: NormalPCI(at["pci.bus_id"])}
	t := &g.GPUTelemetry
	t.MemoryMiB, t.MemoryUsedMiB = whole(at["memory.total"]), whole(at["memory.used"])
	t.Utilization, t.MemoryBusy = whole(at["utilization.gpu"]), whole(at["utilization.memory"])
	t.Temperature, t.SMClock, t.MemoryClock = whole(at["temperature.gpu"]), whole(at["clocks.sm"]), whole(at["clocks.mem"])
	t.Power, t.PowerLimit = number(at["power.draw"]), number(at["enforced.power.limit"])
	t.ECCVolatile = long(at["ecc.errors.uncorrected.volatile.total"])
	t.ECCAggregate = long(at["ecc.errors.uncorrected.aggregate.total"])
	t.ECCCorrectedVolatile = long(at["ecc.errors.corrected.volatile.total"])
	t.ECCCorrectedAggregate = long(at["ecc.errors.corrected.aggregate.total"])
	t.PCIeGeneration, t.PCIeGenerationMax = whole(at["pcie.link.gen.current"]), whole(at["pcie.link.gen.max"])
	t.PCIeWidth, t.PCIeWidthMax = whole(at["pcie.link.width.current"]), whole(at["pcie.link.width.max"])
	if bits, err := strconv.ParseUint(at["clocks_throttle_reasons.active"], 0, 64); err == nil {
		t.Throttle = throttleReasons(bits)
	}
	if mode := at["mig.mode.current"]; mode == "Enabled" || mode == "Disabled" {
		t.MIG = Of(mode == "Enabled")
	}
	return g, at["driver_version"], nil
}

// whole, long and number read a figure; nil where there is none, as in "[N/A]".
func whole(field string) *int {
	if n, err := strconv.Atoi(field); err == nil {
		return &n
	}
	return nil
}

func long(field string) *int64 {
	if n, err := strconv.ParseInt(field, 10, 64); err == nil {
		return &n
	}
	return nil
}

func number(field string) *float64 {
	if n, err := strconv.ParseFloat(field, 64); err == nil && n >= 0 && n < 1e5 {
		return &n
	}
	return nil
}
