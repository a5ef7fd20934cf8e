// Package dcgm fills in what a source of telemetry does not tell of GPUs, from the metrics of a DCGM exporter.
//
// What the source tells itself goes before. Nothing of the exporter decides on the health of a GPU: its figures are up
// to half a minute old, and it keeps the last error for ever. A page that is not whole, too large or late fills in
// nothing, and the look says so.
package dcgm

import (
	"context"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/gpu"
)

// Source is another source, with what an exporter tells besides.
type Source struct {
	gpu.Source
	Exporter *Exporter
}

// Look is the other source's, whose errors it has. That the exporter cannot be read is no problem of the look, which is
// whole without it, and stands beside it.
func (s Source) Look(ctx context.Context) (gpu.Reading, error) {
	r, err := s.Source.Look(ctx)
	if err != nil {
		return r, err
	}
	told, err := s.Exporter.read(ctx)
	if err != nil {
		text := err.Error()
		r.Look.ExporterProblem = strings.ToValidUTF8(text[:min(len(text), mostProblem)], "")
		return r, nil
	}
	for i := range r.Look.GPUs {
		if g := &r.Look.GPUs[i]; g.Parent == "" { // MIG devices have figures of their own
			g.FromDCGM = fill(&g.GPUTelemetry, told[g.UUID])
		}
	}
	return r, nil
}

// mostProblem is how long a problem may be, in bytes.
const mostProblem = 300

// fill fills in what is not there, and names it.
func fill(to *contract.GPUTelemetry, from page) (filled []string) {
	for _, f := range fields {
		if f.fill(to, from) {
			filled = append(filled, f.name)
		}
	}
	return filled
}
