//go:build linux

package devicefilter

import "golang.org/x/sys/unix"

// Retry is retry.
var Retry = retry

// Allows runs the program for a device as the kernel would.
func (d Devices) Allows(majorNumber, minorNumber int32) bool {
	p, registers := program(d), [4]int32{}
	for at := 0; ; at++ {
		i := p[at]
		target, equal := i.registers&15, registers[i.registers&15] == i.value
		switch {
		case i.code == exit:
			return registers[answer] == 1
		case i.code == moveValue:
			registers[target] = i.value
		case i.code == loadWord && i.offset == majorOffset:
			registers[target] = majorNumber
		case i.code == loadWord && i.offset == minorOffset:
			registers[target] = minorNumber
		case i.code == jumpIfEqual && equal, i.code == jumpIfAtLeast && registers[target] >= i.value:
			at += int(i.offset)
		case i.code&7 != unix.BPF_JMP:
			panic("an instruction that this program has not")
		}
	}
}
