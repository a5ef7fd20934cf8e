package main

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/forewarm/forewarm/core/backtest"
)

const (
	gapBins   = 240 // of a minute
	fewGaps   = 10
	minSpread = 2.0 // coefficient of variation of the bins' counts
	headShare = 0.05
	headScale = 0.9
	tailScale = 1.1
)

type histogramSetting struct {
	tail     float64 // the share of gaps that the tail covers
	fallback int64   // keep-alive in minutes
}

func histogramSettings(s *scenario) []setting {
	var grid []histogramSetting
	for _, fallback := range []int64{10, 240} {
		for _, tail := range []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99} {
			grid = append(grid, histogramSetting{tail, fallback})
		}
	}
	label := func(h histogramSetting) string { return fmt.Sprintf("tail %.2f, else %d min", h.tail, h.fallback) }
	return settingForEach(grid, label, func(h histogramSetting) backtest.Policy {
		return makePunctual(&hybrid{ticker: newTicker(), setting: h, boot: s.boot})
	})
}

// hybrid is the hybrid histogram policy of Serverless in the Wild (USENIX ATC
// 2020) for levels of concurrency: it learns how long GPU number k of a tenant is
// not used, releases it for the time that nearly all such gaps last, and keeps it
// until most of them have ended. Levels share a histogram by the power of two.
type hybrid struct {
	ticker
	setting histogramSetting
	boot    int64
	demand  int
	freed   []int64 // when each level was last freed, by level
	gaps    [32]gaps
}

// Submit tells of a job.
func (h *hybrid) Submit(now int64, j backtest.Job) {
	h.noteEvent(now)
	for k := h.demand; k < h.demand+j.GPUs; k++ {
		if k == len(h.freed) {
			h.freed = append(h.freed, math.MaxInt64)
		} else {
			h.gaps[histogramOf(k)].addGap((now - h.freed[k]) / 60)
		}
	}
	h.demand += j.GPUs
}

// End tells of its end.
func (h *hybrid) End(now int64, j backtest.Job, _ int64) {
	h.demand -= j.GPUs
	for k := h.demand; k < h.demand+j.GPUs; k++ {
		h.freed[k] = now
	}
}

// histogramOf returns the histogram of a level that is counted from 0.
func histogramOf(level int) int { return bits.Len(uint(level+1)) - 1 }

// Target returns the demand and how many unused levels are to be warm.
func (h *hybrid) Target(now int64) int {
	h.noteAsked(now)
	warm := h.demand
	last, from, until := -1, int64(0), int64(0)
	for k := h.demand; k < len(h.freed); k++ {
		if g := histogramOf(k); g != last {
			last = g
			from, until = h.gaps[g].warmWindow(h.setting, h.boot)
		}
		if gap := now - h.freed[k]; gap >= from && gap <= until {
			warm++
		}
	}
	return warm
}

// gaps is a histogram of gaps.
type gaps struct {
	counts      [gapBins]int32
	inside, out int
	dirty       bool
	from, until int64
}

func (g *gaps) addGap(minutes int64) {
	g.dirty = true
	if minutes >= gapBins {
		g.out++
		return
	}
	g.inside++
	g.counts[minutes]++
}

// warmWindow returns between which seconds of a gap a unit is to be warm.
func (g *gaps) warmWindow(s histogramSetting, boot int64) (from, until int64) {
	if g.dirty || g.until == 0 {
		g.dirty = false
		g.from, g.until = 0, s.fallback*60
		if g.isRepresentative() {
			g.from = max(0, int64(headScale*60*float64(g.minuteAtShare(headShare)))-boot)
			g.until = int64(tailScale * 60 * float64(g.minuteAtShare(s.tail)+1))
		}
	}
	return g.from, g.until
}

func (g *gaps) isRepresentative() bool {
	if g.inside+g.out < fewGaps || g.out > g.inside {
		return false
	}
	mean := float64(g.inside) / gapBins
	squares := 0.0
	for _, c := range g.counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	return math.Sqrt(squares/gapBins) >= minSpread*mean
}

// minuteAtShare returns the minute within which a share of the gaps in range has ended.
func (g *gaps) minuteAtShare(share float64) int {
	need := int32(math.Ceil(share * float64(g.inside)))
	for m, c := range g.counts {
		if need -= c; need <= 0 {
			return m
		}
	}
	return gapBins - 1
}
