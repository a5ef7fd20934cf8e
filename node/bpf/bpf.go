//go:build linux

// Package bpf attaches programs of a handful of instructions to cgroups: the kernel runs one whenever a process of the
// cgroup does what it is asked about, and refuses that where the program answers 0. It is what systemd and Slurm do,
// without a library (man 2 bpf).
package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Instruction is one of the kernel's (struct bpf_insn).
type Instruction struct {
	Code      uint8
	Registers uint8 // source and destination, as Registers writes them
	Offset    int16
	Value     int32
}

// The instructions that are used (Documentation/bpf/standardization/instruction-set.rst).
const (
	LoadWord      = unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W
	MoveValue     = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K
	JumpIfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	JumpIfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	// JumpIfNotWord compares 32 bits, so that a value is not taken for a negative one.
	JumpIfNotWord = unix.BPF_JMP32 | unix.BPF_JNE | unix.BPF_K
	Exit          = unix.BPF_JMP | unix.BPF_EXIT
)

// The registers that have a meaning when a program begins and ends.
const (
	Answer  = 0
	Context = 1
)

// Registers are the destination and the source of an instruction.
func Registers(destination, source uint8) uint8 { return destination | source<<4 }

// Question is what a program is asked.
type Question struct {
	Program uint32 // BPF_PROG_TYPE_…
	Attach  uint32 // BPF_CGROUP_…
}

// What programs are asked about.
var (
	OpensDevice  = Question{unix.BPF_PROG_TYPE_CGROUP_DEVICE, unix.BPF_CGROUP_DEVICE}
	ConnectsIPv4 = Question{unix.BPF_PROG_TYPE_CGROUP_SOCK_ADDR, unix.BPF_CGROUP_INET4_CONNECT}
	ConnectsIPv6 = Question{unix.BPF_PROG_TYPE_CGROUP_SOCK_ADDR, unix.BPF_CGROUP_INET6_CONNECT}
	SendsIPv4    = Question{unix.BPF_PROG_TYPE_CGROUP_SOCK_ADDR, unix.BPF_CGROUP_UDP4_SENDMSG} // by UDP, unconnected
	SendsIPv6    = Question{unix.BPF_PROG_TYPE_CGROUP_SOCK_ADDR, unix.BPF_CGROUP_UDP6_SENDMSG}
)

// Program is one that the kernel has checked, which takes longer than to attach it.
type Program struct {
	question Question
	file     *os.File
}

// Load has the kernel check a program that answers a question. It is there until it is closed, and for as long as it is
// attached.
func Load(question Question, code []Instruction) (*Program, error) {
	fd, err := load(question, code)
	if err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	return &Program{question, os.NewFile(uintptr(fd), "program")}, nil //nolint:gosec // a descriptor
}

// Close gives up a program, which stays where it is attached.
func (p *Program) Close() error { return p.file.Close() }

// Attach has the program answer for the processes of a cgroup, until that is removed. A cgroup that has a program for
// the question keeps that one.
func (p *Program) Attach(cgroup string) error {
	dir, err := os.Open(cgroup) //nolint:gosec // of a hold
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if has, err := hasProgram(dir, p.question); err != nil || has {
		return err
	}
	attach := struct{ target, program, kind, flags uint32 }{
		target:  uint32(dir.Fd()),    //nolint:gosec // a descriptor
		program: uint32(p.file.Fd()), //nolint:gosec // another
		kind:    p.question.Attach, flags: unix.BPF_F_ALLOW_MULTI}
	if _, err := call(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attach), unsafe.Sizeof(attach)); err != nil {
		return fmt.Errorf("attaching: %w", err)
	}
	return nil
}

// Attach loads a program that only one cgroup has, and attaches it there.
func Attach(cgroup string, question Question, code []Instruction) error {
	p, err := Load(question, code)
	if err != nil {
		return err
	}
	return errors.Join(p.Attach(cgroup), p.Close())
}

// load has the kernel check a program, and returns its descriptor.
func load(question Question, code []Instruction) (program int, err error) {
	license := []byte("Apache-2.0\x00")
	what := struct {
		kind, count     uint32
		code, license   uint64
		level, size     uint32
		buffer          uint64
		version, flags  uint32
		name            [16]byte
		device, attachs uint32
	}{kind: question.Program, count: uint32(len(code)), //nolint:gosec // bounded
		code: address(&code[0]), license: address(&license[0]), attachs: question.Attach}
	program, err = retry(func() (int, error) {
		return call(unix.BPF_PROG_LOAD, unsafe.Pointer(&what), unsafe.Sizeof(what))
	})
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	return program, err
}

// hasProgram reports whether a cgroup has a program of its own for a question.
func hasProgram(cgroup *os.File, question Question) (bool, error) {
	query := struct {
		target, kind, flags, attached uint32
		programs                      uint64
		count, _                      uint32
	}{target: uint32(cgroup.Fd()), kind: question.Attach} //nolint:gosec // a descriptor
	if _, err := call(unix.BPF_PROG_QUERY, unsafe.Pointer(&query), unsafe.Sizeof(query)); err != nil {
		return false, fmt.Errorf("asking for programs: %w", err)
	}
	return query.count > 0, nil
}

// mostLoads is how often a program is loaded until that has failed.
const mostLoads = 100

// retry loads a program again for as long as it is interrupted: the kernel gives up checking it when a signal waits for
// the thread, and answers EAGAIN (kernel/bpf/verifier.c), and Go's runtime preempts threads by signals. libbpf tries
// again, too.
func retry(load func() (int, error)) (program int, err error) {
	for range mostLoads {
		if program, err = load(); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return program, err
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

func call(command uintptr, what unsafe.Pointer, size uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(what), size)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
