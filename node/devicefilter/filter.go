//go:build linux

// Package devicefilter keeps the processes of a cgroup from the NVIDIA GPUs that are not
// theirs: by a BPF program, which the kernel asks whenever one of them opens a device.
//
// It is what systemd's DeviceAllow and Slurm's cgroup plugin do, without a library: a handful
// of instructions (man 2 bpf, BPF_PROG_TYPE_CGROUP_DEVICE). Devices of other drivers, and
// NVIDIA's own control devices, are let through.
package devicefilter

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// majorNVIDIA is the number of NVIDIA's driver: /dev/nvidiaN is its device N.
	majorNVIDIA = 195
	// firstControl is the first of its devices that are no GPU: nvidia-modeset and nvidiactl.
	firstControl = 254
	// MostGPUs bounds the program.
	MostGPUs = 64
)

// instruction is one of the kernel's (struct bpf_insn).
type instruction struct {
	code      uint8
	registers uint8 // source and destination
	offset    int16
	value     int32
}

// The instructions that are used (Documentation/bpf/standardization/instruction-set.rst).
const (
	loadWord      = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
	moveValue     = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
	jumpIfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpIfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	exit          = unix.BPF_JMP | unix.BPF_EXIT
)

// The registers: the answer, the context that the kernel gives, and two to work with.
const (
	answer  = 0
	context = 1
	major   = 2
	minor   = 3
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
func program(d Devices) []instruction {
	gpus := append(allow(d.GPUs, 1), instruction{code: jumpIfAtLeast, registers: minor, value: firstControl, offset: 1})
	gpus = append(gpus, refuse()...)
	p := []instruction{
		{code: moveValue, registers: answer, value: 1},
		{code: loadWord, registers: major | context<<4, offset: majorOffset},
		{code: loadWord, registers: minor | context<<4, offset: minorOffset},
	}
	if len(d.Capabilities) == 0 {
		p = append(p, instruction{code: jumpIfEqual, registers: major, value: majorNVIDIA, offset: 1},
			instruction{code: exit})
		return append(p, gpus...)
	}
	p = append(p, instruction{code: jumpIfEqual, registers: major, value: majorNVIDIA, offset: 2},
		instruction{code: jumpIfEqual, registers: major, value: int32(d.CapabilityMajor), //nolint:gosec // a major is small
			offset: int16(len(gpus)) + 1}, //nolint:gosec // bounded by check
		instruction{code: exit})
	p = append(append(p, gpus...), allow(d.Capabilities, 0)...)
	return append(p, refuse()...)
}

// allow jumps from each of some minor numbers over the others, so many more instructions, and the refusal, to the end.
func allow(minors []int, more int16) []instruction {
	var p []instruction
	left := int16(len(minors)) //nolint:gosec // bounded by check
	for _, m := range minors {
		p = append(p, instruction{code: jumpIfEqual, registers: minor,
			value: int32(m), offset: left + more}) //nolint:gosec // as above
		left--
	}
	return p
}

// refuse answers 0, and ends; a jump over its first instruction ends with the answer that was.
func refuse() []instruction {
	return []instruction{{code: moveValue, registers: answer, value: 0}, {code: exit}}
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
	if err := d.check(); err != nil {
		return fmt.Errorf("filtering devices: %w", err)
	}
	code, license := program(d), []byte("Apache-2.0\x00")
	load := struct {
		kind, count     uint32
		code, license   uint64
		level, size     uint32
		buffer          uint64
		version, flags  uint32
		name            [16]byte
		device, attachs uint32
	}{kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(code)), //nolint:gosec // bounded
		code: address(&code[0]), license: address(&license[0]), attachs: unix.BPF_CGROUP_DEVICE}
	filter, err := retry(func() (int, error) {
		return call(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	})
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if err != nil {
		return fmt.Errorf("filtering devices: loading: %w", err)
	}
	defer func() { _ = unix.Close(filter) }()
	dir, err := os.Open(cgroup) //nolint:gosec // of a hold
	if err != nil {
		return fmt.Errorf("filtering devices: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if has, err := hasFilter(dir); err != nil || has {
		return err
	}
	attach := struct{ target, filter, kind, flags uint32 }{uint32(dir.Fd()), uint32(filter), //nolint:gosec // descriptors
		unix.BPF_CGROUP_DEVICE, unix.BPF_F_ALLOW_MULTI}
	if _, err := call(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attach), unsafe.Sizeof(attach)); err != nil {
		return fmt.Errorf("filtering devices: attaching: %w", err)
	}
	return nil
}

// hasFilter reports whether a cgroup has a filter of devices of its own.
func hasFilter(cgroup *os.File) (bool, error) {
	query := struct {
		target, kind, flags, attached uint32
		filters                       uint64
		count, _                      uint32
	}{target: uint32(cgroup.Fd()), kind: unix.BPF_CGROUP_DEVICE} //nolint:gosec // a descriptor
	if _, err := call(unix.BPF_PROG_QUERY, unsafe.Pointer(&query), unsafe.Sizeof(query)); err != nil {
		return false, fmt.Errorf("filtering devices: asking for filters: %w", err)
	}
	return query.count > 0, nil
}

// mostLoads is how often a program is loaded until that has failed.
const mostLoads = 100

// retry loads a program again for as long as it is interrupted: the kernel gives up checking it when a signal waits for
// the thread, and answers EAGAIN (kernel/bpf/verifier.c), and Go's runtime preempts threads by signals. libbpf tries
// again, too.
func retry(load func() (int, error)) (filter int, err error) {
	for range mostLoads {
		if filter, err = load(); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return filter, err
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

func call(command uintptr, what unsafe.Pointer, size uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(what), size)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
