//go:build linux

package addressfilter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/bpf"
)

// Allows runs the program for where a socket connects to, as the kernel would; of IPv6, if that is wanted.
func Allows(to netip.AddrPort, ipv6 bool) bool {
	context := make([]byte, portOffset+wordSize)
	p := program(ipv4Offset, words4())
	if ipv6 {
		p = program(ipv6Offset, words6())
		address := to.Addr().As16()
		copy(context[ipv6Offset:], address[:])
	} else {
		copy(context[ipv4Offset:], to.Addr().AsSlice())
	}
	binary.NativeEndian.PutUint32(context[portOffset:],
		uint32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, to.Port()))))
	registers := [8]uint32{}
	for at := 0; ; at++ {
		i := p[at]
		switch target := i.Registers & 15; {
		case i.Code == bpf.Exit:
			return registers[bpf.Answer] == 1
		case i.Code == bpf.MoveValue:
			registers[target] = uint32(i.Value)
		case i.Code == bpf.LoadWord:
			registers[target] = binary.NativeEndian.Uint32(context[i.Offset:])
		case i.Code == bpf.JumpIfNotWord && registers[target] != uint32(i.Value):
			at += int(i.Offset)
		case i.Code&7 != unix.BPF_JMP32:
			panic("an instruction that this program has not")
		}
	}
}
