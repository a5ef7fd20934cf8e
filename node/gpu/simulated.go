package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/forewarm/forewarm/contract"
)

// Simulated is a source of GPUs that do not exist, and says so. Of the same seed it says
// the same, look by look.
type Simulated struct {
	Seed      string
	Count     int
	MemoryMiB int
	UUIDs     []string // of the GPUs, where they are known; others are made
	// Working returns those on which somebody's work runs, by UUID with their indices on the node; all others do
	// nothing. The index counts where the UUID is none of these, as of a provisioner that made its own up, and -1 is
	// none. Nil: nobody knows, and all seem to work.
	Working func() map[string]int

	looks int
}

// Look returns figures that move like those of a machine with work, of the GPUs that work.
func (s *Simulated) Look(ctx context.Context) (Reading, error) {
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	s.looks++
	r := Reading{Look: contract.NodeLook{Source: FromSimulated, Driver: "SIM", GPUs: []contract.LookGPU{}}}
	for i := range s.Count {
		r.Look.GPUs = append(r.Look.GPUs, s.gpu(i))
	}
	if s.Working != nil {
		s.idle(r.Look.GPUs, s.Working())
	}
	return r, nil
}

// idle has those GPUs do nothing on which no work runs.
func (s *Simulated) idle(all []contract.LookGPU, working map[string]int) {
	works := make([]bool, len(all))
	for uuid, index := range working {
		if i := slices.IndexFunc(all, func(g contract.LookGPU) bool { return g.UUID == uuid }); i >= 0 {
			index = i
		}
		if index >= 0 && index < len(all) {
			works[index] = true
		}
	}
	for i := range all {
		if !works[i] {
			all[i].GPUTelemetry = s.figures(0)
		}
	}
}

// Close has nothing to close.
func (s *Simulated) Close() {}

func (s *Simulated) gpu(i int) contract.LookGPU {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d", s.Seed, i))
	text := hex.EncodeToString(sum[:16])
	chance := rand.New(rand.NewPCG(uint64(sum[0])<<8|uint64(i), uint64(s.looks))) //nolint:gosec // a simulation
	busy := int(50 + 45*math.Sin(float64(s.looks+7*i)/9) + 5*chance.Float64())
	g := contract.LookGPU{Index: i, Minor: Of(i), Model: "SIM GPU", PCI: fmt.Sprintf("0000:%02x:00", i+1),
		UUID: "GPU-SIM-" + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]}
	if i < len(s.UUIDs) {
		g.UUID = s.UUIDs[i]
	}
	g.GPUTelemetry = s.figures(busy)
	return g
}

// figures are those of a GPU that is busy for a part of the time, in percent.
func (s *Simulated) figures(busy int) contract.GPUTelemetry {
	return contract.GPUTelemetry{Utilization: &busy, MemoryMiB: &s.MemoryMiB,
		MemoryUsedMiB: Of(s.MemoryMiB * busy / 120), Temperature: Of(32 + busy/2), Power: Of(70 + 3.3*float64(busy)),
		SMClock: Of(1200 + 7*busy), Recovery: "none", Processes: Of(min(busy/30, 1))}
}
