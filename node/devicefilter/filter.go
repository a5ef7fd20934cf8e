//go:build linux

// Package devicefilter keeps the processes of a cgroup from the NVIDIA GPUs that are not
// theirs: by a BPF program, which the kernel asks whenever one of them opens a device.
//
// It is what systemd's DeviceAllow and Slurm's cgroup plugin do, without a library: a handful
// of instructions (man 2 bpf, BPF_PROG_TYPE_CGROUP_DEVICE). Devices of other drivers, and
// NVIDIA's own control devices, are let through.
package devicefilter

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/node/bpf"
)

const (
	// majorNVIDIA is the number of NVIDIA's driver: /dev/nvidiaN is its device N.
	majorNVIDIA = 195
	// firstControl is the first of its devices that are no GPU: nvidia-modeset and nvidiactl.
	firstControl = 254
	// MostGPUs bounds the program.
	MostGPUs = 64
)

// The registers that the program works with.
const (
	major = 2
	minor = 3
)

// Where the context (struct bpf_cgroup_dev_ctx) has the device's numbers, in bytes.
const (
	majorOffset = 4
	minorOffset = 8
)

// Devices are what a cgroup may open of NVIDIA's, by their minor numbers.
type Devices struct {
	GPUs []int // N of /dev/nvidiaN
	// Capabilities are N of /dev/nvidia-caps/nvidia-capN, where the GPUs are divided by MIG: one for the GPU instance and
	// one for the compute instance of each device. CapabilityMajor is the number of their driver here.
	Capabilities    []int
	CapabilityMajor int
}

// check refuses what is no such number, or more than fits into a program.
func (d Devices) check() error {
	if len(d.GPUs) > MostGPUs || slices.ContainsFunc(d.GPUs, func(m int) bool { return m < 0 || m >= firstControl }) {
		return fmt.Errorf("no minor numbers of GPUs: %v", d.GPUs)
	}
	const most = 2 * MostGPUs
	negative := func(m int) bool { return m < 0 }
	if len(d.Capabilities) > most || slices.ContainsFunc(d.Capabilities, negative) ||
		len(d.Capabilities) > 0 && d.CapabilityMajor <= 0 {
		return fmt.Errorf("no minor numbers of capabilities of driver %d: %v", d.CapabilityMajor, d.Capabilities)
	}
	return nil
}

// program answers 1 for what may be opened: devices of other drivers, the GPUs and capabilities that are allowed, and
// control devices. Without capabilities all of those are let through: they open nothing without the GPU.
func program(d Devices) []bpf.Instruction {
	gpus := append(allow(d.GPUs, 1),
		bpf.Instruction{Code: bpf.JumpIfAtLeast, Registers: minor, Value: firstControl, Offset: 1})
	gpus = append(gpus, refuse()...)
	p := []bpf.Instruction{
		{Code: bpf.MoveValue, Registers: bpf.Answer, Value: 1},
		{Code: bpf.LoadWord, Registers: bpf.Registers(major, bpf.Context), Offset: majorOffset},
		{Code: bpf.LoadWord, Registers: bpf.Registers(minor, bpf.Context), Offset: minorOffset},
	}
	if len(d.Capabilities) == 0 {
		p = append(p, bpf.Instruction{Code: bpf.JumpIfEqual, Registers: major, Value: majorNVIDIA, Offset: 1},
			bpf.Instruction{Code: bpf.Exit})
		return append(p, gpus...)
	}
	p = append(p, bpf.Instruction{Code: bpf.JumpIfEqual, Registers: major, Value: majorNVIDIA, Offset: 2},
		bpf.Instruction{Code: bpf.JumpIfEqual, Registers: major,
			Value:  int32(d.CapabilityMajor), //nolint:gosec // a major is small
			Offset: int16(len(gpus)) + 1},    //nolint:gosec // bounded by check
		bpf.Instruction{Code: bpf.Exit})
	p = append(append(p, gpus...), allow(d.Capabilities, 0)...)
	return append(p, refuse()...)
}

// allow jumps from each of some minor numbers over the others, so many more instructions, and the refusal, to the end.
func allow(minors []int, more int16) []bpf.Instruction {
	var p []bpf.Instruction
	left := int16(len(minors)) //nolint:gosec // bounded by check
	for _, m := range minors {
		p = append(p, bpf.Instruction{Code: bpf.JumpIfEqual, Registers: minor,
			Value: int32(m), Offset: left + more}) //nolint:gosec // as above
		left--
	}
	return p
}

// refuse answers 0, and ends; a jump over its first instruction ends with the answer that was.
func refuse() []bpf.Instruction {
	return []bpf.Instruction{{Code: bpf.MoveValue, Registers: bpf.Answer, Value: 0}, {Code: bpf.Exit}}
}

// MajorOf is the number that the kernel gave to a driver of character devices; 0: it has none.
func MajorOf(driver string) int {
	text, err := os.ReadFile("/proc/devices")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if number, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == driver {
			n, _ := strconv.Atoi(number)
			return n
		}
	}
	return 0
}

// Attach lets the processes of a cgroup open these devices, and no others of NVIDIA's but those
// that control, until the cgroup is removed. What they have open already stays open, so that it
// comes before them. A cgroup that has a filter keeps that one.
func Attach(cgroup string, d Devices) error {
	err := d.check()
	if err == nil {
		err = bpf.Attach(cgroup, bpf.OpensDevice, program(d))
	}
	if err != nil {
		return fmt.Errorf("filtering devices: %w", err)
	}
	return nil
}
