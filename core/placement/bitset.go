package placement

import "math/bits"

// bitset is a set of small numbers. A second level says which words are not empty, so
// that the first element of a large and almost empty set is found at once.
type bitset struct {
	words, top []uint64
	count      int
}

func newBitset(n int) *bitset {
	words := (n + 63) / 64
	return &bitset{words: make([]uint64, words), top: make([]uint64, (words+63)/64)}
}

func (b *bitset) add(i int) {
	if b.words[i/64]&(1<<(i%64)) == 0 {
		b.words[i/64] |= 1 << (i % 64)
		b.top[i/4096] |= 1 << (i / 64 % 64)
		b.count++
	}
}

func (b *bitset) remove(i int) {
	if b.words[i/64]&(1<<(i%64)) == 0 {
		return
	}
	b.count--
	if b.words[i/64] &^= 1 << (i % 64); b.words[i/64] == 0 {
		b.top[i/4096] &^= 1 << (i / 64 % 64)
	}
}

// next returns the first element that is at least i, or -1.
func (b *bitset) next(i int) int {
	if i >= 64*len(b.words) {
		return -1
	}
	if w := b.words[i/64] >> (i % 64); w != 0 {
		return i + bits.TrailingZeros64(w)
	}
	word := i/64 + 1
	for t := word / 64; t < len(b.top); t++ {
		w := b.top[t]
		if t == word/64 {
			w &= ^uint64(0) << (word % 64)
		}
		if w != 0 {
			at := 64*t + bits.TrailingZeros64(w)
			return 64*at + bits.TrailingZeros64(b.words[at])
		}
	}
	return -1
}
