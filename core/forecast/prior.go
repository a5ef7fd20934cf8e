package forecast

import (
	"bytes"
	_ "embed" // of the built-in prior
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Prior is what an OnlineModel knows before it has seen anything: the network that
// another Fleet ended with. It holds no trace of single jobs or tenants. The zero
// value knows nothing.
type Prior struct{ data []byte }

// builtIn was learned by `make prior` from the public traces named in
// docs/adr/0019-forecaster.md.
//
//go:embed prior.bin
var builtIn string

// BuiltIn returns the prior that comes with the program: how GPU clusters in
// general behave.
func BuiltIn() Prior { return Prior{[]byte(builtIn)} }

// priorHead begins a stored prior; its number grows when the inputs, the layers
// or the outputs change.
const priorHead = "forewarm prior 1\n"

// ErrPrior says that a stored prior is damaged or was made by another version.
var ErrPrior = errors.New("not a prior of this version")

// ParsePrior reads what Bytes returned, or fails with ErrPrior.
func ParsePrior(data []byte) (Prior, error) {
	if err := newNetwork(networkRate, 1).decode(data); err != nil {
		return Prior{}, err
	}
	return Prior{bytes.Clone(data)}, nil
}

// Bytes returns the stored form. It is not to be changed.
func (p Prior) Bytes() []byte { return p.data }

// Prior returns what the fleet has learned that holds for others, too.
func (f *OnlineModel) Prior() Prior { return Prior{f.model.network.encode()} }

// encode writes the network, but for what is worked out from it.
func (n *network) encode() []byte {
	out := []byte(priorHead)
	number := func(x float32) { out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x)) }
	number(float32(n.seen))
	number(float32(n.learned))
	for _, part := range n.weightSlices() {
		for _, x := range part {
			number(x)
		}
	}
	return out
}

func (n *network) weightSlices() [][]float32 {
	all := [][]float32{n.mean[:], n.variance[:]}
	for i := range n.layers {
		all = append(all, n.layers[i].weights, n.layers[i].squares)
	}
	return all
}

// decode reads what store wrote.
func (n *network) decode(data []byte) error {
	rest, ok := bytes.CutPrefix(data, []byte(priorHead))
	size := 2
	for _, part := range n.weightSlices() {
		size += len(part)
	}
	if !ok || len(rest) != 4*size {
		return fmt.Errorf("reading %d bytes, want %d: %w", len(data), len(priorHead)+4*size, ErrPrior)
	}
	numbers := make([]float32, size)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		if x := float64(numbers[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("number %d is not finite: %w", i, ErrPrior)
		}
	}
	n.seen, n.learned = float64(numbers[0]), int(numbers[1])
	numbers = numbers[2:]
	for _, part := range n.weightSlices() {
		numbers = numbers[copy(part, numbers):]
	}
	n.scaled = false
	n.updateSteps()
	return nil
}
