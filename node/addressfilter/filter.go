//go:build linux

// Package addressfilter keeps the processes of a cgroup from the services that tell a cloud's machine about itself:
// whoever reaches those gets the credentials of the machine's role, and what the machine was started with. The kernel
// asks a BPF program whenever one of the processes connects or sends (man 2 bpf, BPF_PROG_TYPE_CGROUP_SOCK_ADDR).
//
// Names are still resolved, as the same addresses do that on some clouds: port 53 is let through.
package addressfilter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/bpf"
)

// dnsPort is let through.
const dnsPort = 53

// The registers that a program works with: up to four words of an address, and the port.
const (
	firstWord = 2
	port      = 6
)

// Where the context (struct bpf_sock_addr) has where a process connects to, in bytes. All is in the network's order.
const (
	ipv4Offset = 4
	ipv6Offset = 8
	portOffset = 24
	wordSize   = 4
)

// Filter refuses what processes connect or send to the metadata of a cloud, with EPERM. It is safe for concurrent use.
type Filter struct{ programs []*bpf.Program }

// Load has the kernel check the programs of a filter, once for all cgroups.
func Load() (*Filter, error) {
	ipv4, ipv6 := program(ipv4Offset, words4()), program(ipv6Offset, words6())
	f := &Filter{}
	for question, code := range map[bpf.Question][]bpf.Instruction{
		bpf.ConnectsIPv4: ipv4, bpf.SendsIPv4: ipv4,
		bpf.ConnectsIPv6: ipv6, bpf.SendsIPv6: ipv6,
	} {
		p, err := bpf.Load(question, code)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("filtering addresses: %w", err), f.Close())
		}
		f.programs = append(f.programs, p)
	}
	return f, nil
}

// Close gives up the filter, which stays where it is attached.
func (f *Filter) Close() (err error) {
	for _, p := range f.programs {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Attach filters for the processes of a cgroup, until that is removed. Connections that exist stay, so that it comes
// before the processes. A cgroup that has such a filter keeps that one.
func (f *Filter) Attach(cgroup string) error {
	for _, p := range f.programs {
		if err := p.Attach(cgroup); err != nil {
			return fmt.Errorf("filtering addresses: %w", err)
		}
	}
	return nil
}

// words4 are the addresses of IPv4.
func words4() (all [][]uint32) {
	for _, a := range httpx.MetadataAddresses() {
		if a.Is4() {
			all = append(all, words(a.AsSlice()))
		}
	}
	return all
}

// words6 are all addresses as sockets of IPv6 reach them, which reach those of IPv4 as well (RFC 4291, 2.5.5.2).
func words6() (all [][]uint32) {
	for _, a := range httpx.MetadataAddresses() {
		mapped := a.As16()
		all = append(all, words(mapped[:]))
	}
	return all
}

// words are an address as a program loads it.
func words(address []byte) (all []uint32) {
	for word := range slices.Chunk(address, wordSize) {
		all = append(all, binary.NativeEndian.Uint32(word))
	}
	return all
}

// program answers 0 for each of some addresses of equally many words, but for their port of DNS, and 1 for all else.
func program(offset int16, addresses [][]uint32) []bpf.Instruction {
	p := []bpf.Instruction{
		{Code: bpf.MoveValue, Registers: bpf.Answer, Value: 1},
		{Code: bpf.LoadWord, Registers: bpf.Registers(port, bpf.Context), Offset: portOffset},
	}
	for i := range addresses[0] {
		p = append(p, bpf.Instruction{Code: bpf.LoadWord, Registers: bpf.Registers(registerOf(i), bpf.Context),
			Offset: offset + int16(i)*wordSize}) //nolint:gosec // at most 3
	}
	dns := int32(binary.NativeEndian.Uint16([]byte{0, dnsPort}))
	p = append(p, bpf.Instruction{Code: bpf.JumpIfNotWord, Registers: port, Value: dns, Offset: 1},
		bpf.Instruction{Code: bpf.Exit})
	for _, address := range addresses {
		p = append(p, refuse(address)...)
	}
	return append(p, bpf.Instruction{Code: bpf.Exit})
}

// refuse answers 0 if all words of an address are these, and goes on else.
func refuse(address []uint32) (p []bpf.Instruction) {
	const answerAndExit = 2
	for i, word := range address {
		p = append(p, bpf.Instruction{Code: bpf.JumpIfNotWord, Registers: registerOf(i),
			Value:  int32(word),                                  //nolint:gosec // the same bits
			Offset: int16(len(address) - 1 - i + answerAndExit)}) //nolint:gosec // at most 5
	}
	return append(p, bpf.Instruction{Code: bpf.MoveValue, Registers: bpf.Answer, Value: 0},
		bpf.Instruction{Code: bpf.Exit})
}

// registerOf is where a word of the address is.
func registerOf(word int) uint8 { return firstWord + uint8(word) } //nolint:gosec // at most 3
