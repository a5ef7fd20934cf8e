package burnin

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/internal/clock"
)

// The memory is taken in blocks, large ones as long as there are any.
const (
	largest  = 1 << 30
	smallest = 1 << 20
	// sampled is how much of each end of a block is read by this process itself.
	sampled = 4096
	// mostLeft is how much of the memory that is said to be free may stay out of reach: a part of 20, or some MiB.
	mostLeft  = 20
	leftAlone = 64 << 20
)

// pattern says what is to stand in memory: at the word of 8 bytes with an index, index * multiplier + seed.
type pattern struct {
	multiplier, seed uint64
}

// complement has each bit the other way round.
func (p pattern) complement() pattern { return pattern{multiplier: -p.multiplier, seed: ^p.seed} }

func (p pattern) at(index uint64) uint64 { return index*p.multiplier + p.seed }

// plan is what is written, in turn. The last one stays.
type plan struct {
	patterns []pattern
	done     string
}

var (
	addresses = pattern{multiplier: 0x9E3779B97F4A7C15, seed: 0xA5A5A5A5A5A5A5A5} // differs from word to word in most bits
	// toTest has each bit be 1 and 0; toOverwrite leaves zeros, and nothing else.
	toTest      = plan{[]pattern{addresses, addresses.complement(), {}}, "written"}
	toOverwrite = plan{[]pattern{{}}, "overwritten"}
)

// device is a GPU as the driver has it, in this process.
type device interface {
	uuid() string
	memory() (free, total uint64, err error)
	// allocate returns where it begins. errNoMemory: there is not so much.
	allocate(bytes uint64) (at uint64, err error)
	// fill has the GPU write a pattern, and check compare it: how many words differ, and the least index of one.
	fill(b block, p pattern) error
	check(b block, p pattern) (differ, least uint64, err error)
	// read copies what is in memory.
	read(at uint64, into []byte) error
	// kernels says why the GPU cannot compare by itself; empty: it can.
	kernels() string
}

var errNoMemory = errors.New("out of memory")

// block is a part of a GPU's memory.
type block struct {
	at, words, first uint64 // first is the index of its first word
}

// memory is all that could be had of a GPU's.
type memory struct {
	device
	clock  clock.Clock
	blocks []block
	words  uint64
}

func (m *memory) run(p plan) Result {
	began := m.clock.Now()
	free, total, err := m.memory()
	if err != nil {
		return Result{State: Failed, Detail: err.Error()}
	}
	if free < leftAlone {
		return Result{State: Skipped, Detail: fmt.Sprintf("only %s of its memory are free", mib(free))}
	}
	if err := m.take(); err != nil {
		return Result{State: Failed, Detail: err.Error()}
	}
	if left := free - min(free, 8*m.words); left > max(free/mostLeft, leftAlone) {
		return Result{State: Failed, Detail: fmt.Sprintf("out of memory: %s are said to be free, and %s could be had",
			mib(free), mib(8*m.words))}
	}
	for _, pattern := range p.patterns {
		if err := m.write(pattern); err != nil {
			return Result{State: Failed, Detail: err.Error()}
		}
	}
	detail := fmt.Sprintf("%s of %s %s and read back in %.1f s", mib(8*m.words), mib(total), p.done,
		m.clock.Now().Sub(began).Seconds())
	if why := m.kernels(); why != "" {
		detail += ", read back in samples alone: " + why
	}
	return Result{State: Passed, Detail: detail, MiB: 8 * m.words >> 20, AllMiB: total >> 20}
}

// take takes all memory that can be had.
func (m *memory) take() error {
	for size := uint64(largest); size >= smallest; {
		at, err := m.allocate(size)
		if errors.Is(err, errNoMemory) {
			size /= 2
			continue
		}
		if err != nil {
			return err
		}
		b := block{at: at, words: size / 8, first: m.words}
		m.blocks, m.words = append(m.blocks, b), m.words+b.words
	}
	return nil
}

// write writes a pattern everywhere before it reads any of it back, so that two addresses of one place are found.
func (m *memory) write(p pattern) error {
	for _, b := range m.blocks {
		if err := m.fill(b, p); err != nil {
			return err
		}
	}
	for _, b := range m.blocks {
		differ, least, err := m.check(b, p)
		if err != nil {
			return err
		}
		if differ > 0 {
			return fmt.Errorf("%d words of its memory were not what was written, the first of them %s after the beginning",
				differ, place(8*least))
		}
		if err := m.sample(b, p); err != nil {
			return err
		}
	}
	return nil
}

// sample reads both ends of a block, so that no kernel need be believed alone.
func (m *memory) sample(b block, p pattern) error {
	const words = sampled / 8
	var text [sampled]byte
	for _, from := range []uint64{0, b.words - words} {
		if err := m.read(b.at+8*from, text[:]); err != nil {
			return err
		}
		for i := range uint64(words) {
			index := b.first + from + i
			if got := binary.NativeEndian.Uint64(text[8*i:]); got != p.at(index) {
				return fmt.Errorf("a word of its memory was not what was written, %s after the beginning: %016x instead of %016x",
					place(8*index), got, p.at(index))
			}
		}
	}
	return nil
}

func place(bytes uint64) string { return fmt.Sprintf("%d bytes", bytes) }
