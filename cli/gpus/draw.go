package gpus

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// bars are the heights of a line that is drawn.
var bars = []rune("▁▂▃▄▅▆▇█")

// figure is one of which a line is drawn, from zero to full; to the highest where full is 0.
type figure struct {
	name string
	full float64
	of   func(contract.GPUHistoryStep) (value float64, told bool)
	text func(float64) string
}

var figures = []figure{
	{"use", 100, func(x contract.GPUHistoryStep) (float64, bool) { return valueOf(x.UtilizationMean) },
		func(v float64) string { return fmt.Sprintf("%.0f%%", v) }},
	{"memory", 0, func(x contract.GPUHistoryStep) (float64, bool) { return valueOf(x.MemoryUsedMiBMean) },
		func(v float64) string { return fmt.Sprintf("%.1fG", v/1024) }},
	{"hottest", 0, func(x contract.GPUHistoryStep) (float64, bool) { return valueOf(x.TemperatureMax) },
		func(v float64) string { return fmt.Sprintf("%.0fC", v) }},
	{"power", 0, func(x contract.GPUHistoryStep) (float64, bool) { return valueOf(x.PowerMean) },
		func(v float64) string { return fmt.Sprintf("%.0fW", v) }},
}

func valueOf[N int | float64](x *N) (value float64, told bool) {
	if x == nil {
		return 0, false
	}
	return float64(*x), true
}

// drawHistory draws a line for each figure that was told, of one character for each step.
func drawHistory(all []contract.GPUHistoryStep) string {
	var b strings.Builder
	for _, f := range figures {
		if highest, told := f.highest(all); told {
			_, _ = fmt.Fprintf(&b, "%-9s%s  up to %s\n", f.name, f.draw(all, max(f.full, highest)), f.text(highest))
		}
	}
	return b.String()
}

func (f figure) highest(all []contract.GPUHistoryStep) (highest float64, told bool) {
	for _, x := range all {
		if v, ok := f.of(x); ok {
			highest, told = max(highest, v), true
		}
	}
	return highest, told
}

// draw draws steps from zero to full. Where nothing came there is a dot.
func (f figure) draw(all []contract.GPUHistoryStep, full float64) string {
	var b strings.Builder
	for _, x := range all {
		switch v, told := f.of(x); {
		case !told:
			b.WriteRune('·')
		case v <= 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[min(int(v/full*float64(len(bars))), len(bars)-1)])
		}
	}
	return b.String()
}
