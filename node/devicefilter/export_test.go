//go:build linux

package devicefilter

import (
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/bpf"
)

// Allows runs the program for a device as the kernel would.
func (d Devices) Allows(majorNumber, minorNumber int32) bool {
	p, registers := program(d), [4]int32{}
	for at := 0; ; at++ {
		i := p[at]
		target, equal := i.Registers&15, registers[i.Registers&15] == i.Value
		switch {
		case i.Code == bpf.Exit:
			return registers[bpf.Answer] == 1
		case i.Code == bpf.MoveValue:
			registers[target] = i.Value
		case i.Code == bpf.LoadWord && i.Offset == majorOffset:
			registers[target] = majorNumber
		case i.Code == bpf.LoadWord && i.Offset == minorOffset:
			registers[target] = minorNumber
		case i.Code == bpf.JumpIfEqual && equal, i.Code == bpf.JumpIfAtLeast && registers[target] >= i.Value:
			at += int(i.Offset)
		case i.Code&7 != unix.BPF_JMP:
			panic("an instruction that this program has not")
		}
	}
}
