package place

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/forecast"
)

// Raise keeps at least what accepted evidence holds, at most limit GPUs. A window
// is cut where a hold begins or ends, so that a hold of minutes does not keep GPUs
// for a window of hours. What lies outside of the choices is left out.
func Raise(choices []Choice, holds []predict.Hold, limit int) []Choice {
	var all []Choice
	for _, c := range choices {
		cuts := cutPoints(c.Window, holds)
		for i, start := range cuts[:len(cuts)-1] {
			piece := c
			piece.Statistics = c.GPUs
			piece.Window.Start, piece.Window.End = start, cuts[i+1]
			all = append(all, raiseTo(piece, holds, limit))
		}
	}
	return all
}

// cutPoints returns the instants at which a window begins, is cut and ends.
func cutPoints(w predict.Window, holds []predict.Hold) []time.Time {
	cuts := []time.Time{w.Start, w.End}
	for _, h := range holds {
		for _, at := range []time.Time{h.Start.Truncate(time.Second), h.End.Truncate(time.Second)} {
			if at.After(w.Start) && at.Before(w.End) {
				cuts = append(cuts, at)
			}
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

// raiseTo keeps what the largest hold over the piece holds.
func raiseTo(c Choice, holds []predict.Hold, limit int) Choice {
	for _, h := range holds {
		gpus := min(h.GPUs, limit)
		if gpus <= c.GPUs || h.Start.Truncate(time.Second).After(c.Window.Start) || h.End.Before(c.Window.End) {
			continue
		}
		c.Why = fmt.Sprintf("hold %d from %s to %s, as the model announced (%s, with trust %.2f); statistics alone "+
			"would hold %d", gpus, h.Start.UTC().Format(time.TimeOnly), h.End.UTC().Format(time.TimeOnly), h.Reason,
			h.Chance, c.Statistics)
		c.GPUs = gpus
		c.Window.Reason = h.Reason
		c.Window.Forecast = forecast.Highest(c.Window.Forecast, forecast.Event(h.Chance, gpus, gpus, gpus))
	}
	return c
}
