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
	// Working returns the UUIDs of those on which somebody's work runs; all others do nothing. Nil: nobody knows, and all
	// seem to work.
	Working func() []string

	looks int
}

// Look returns figures that move like those of a machine with work, of the GPUs that work.
func (s *Simulated) Look(ctx context.Context) (Reading, error) {
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	s.looks++
	r := Reading{Look: contract.NodeLook{Source: FromSimulated, Driver: "SIM", GPUs: []contract.LookGPU{}}}
	var working []string
	if s.Working != nil {
		working = s.Working()
	}
	for i := range s.Count {
		g := s.gpu(i)
		if s.Working != nil && !slices.Contains(working, g.UUID) {
			g.GPUTelemetry = s.figures(0)
		}
		r.Look.GPUs = append(r.Look.GPUs, g)
	}
	return r, nil
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
