package main

import (
	"fmt"
	"io"
	"math"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

const (
	within      = 600 // seconds in which demand may rise
	checkEvery  = 60  // seconds between two looks of one tenant that are checked
	reliability = 10  // bins of the stated chance
)

// calibration compares what looks said with what came: the chance that demand
// rises within ten minutes, and the distribution of the rise. Its zero value is
// ready for a trace whose scored span is set.
type calibration struct {
	from, last int64
	draw       splitMix
	bins       [reliability]lookCount
}

// lookCount sums up looks.
type lookCount struct {
	looks, rises, inside int
	said, brier, loss    float64
}

func (c *lookCount) addCount(o lookCount) {
	c.looks += o.looks
	c.rises += o.rises
	c.inside += o.inside
	c.said += o.said
	c.brier += o.brier
	c.loss += o.loss
}

func newCalibration(t backtest.Trace) *calibration {
	_, from, last := t.Window()
	return &calibration{from: from, last: last, draw: newDraw()}
}

// newDraw starts the numbers that split whole GPUs.
func newDraw() splitMix { return *newSplitMix("calibration") }

// closeLook counts a look whose ten minutes have passed, in which demand rose by so
// many GPUs at most.
func (c *calibration) closeLook(o forecast.Outlook, rise int) {
	p := o.Chance(1, within)
	t := lookCount{looks: 1, said: p, brier: forecast.Brier(p, rise > 0), loss: forecast.LogLoss(p, rise > 0)}
	if rise > 0 {
		t.rises = 1
	}
	if u := c.placeInQuantiles(o.Within(within), rise); u >= 0.1 && u <= 0.9 {
		t.inside = 1
	}
	c.bins[min(reliability-1, int(p*reliability))].addCount(t)
}

// placeInQuantiles is the randomised probability integral transform: where in its
// distribution a whole number fell, evenly spread over the share of that number.
// If the distribution is right it is uniform (Czado, Gneiting and Held,
// "Predictive Model Assessment for Count Data", Biometrics 2009), which whether
// whole numbers lie between two quantiles is not.
func (c *calibration) placeInQuantiles(f forecast.Forecast, rise int) float64 {
	below, upTo := 1-f.AtLeast(rise), 1-f.AtLeast(rise+1)
	return below + c.draw.nextFloat()*(upTo-below)
}

func (c *calibration) sumCounts() (all lookCount) {
	for _, b := range c.bins {
		all.addCount(b)
	}
	return all
}

// writeReport writes the table and the figures.
func (c *calibration) writeReport(out io.Writer, prefix string) {
	fmt.Fprintf(out, "calibration: chance that demand rises within %d s, and rises inside the 80 %% interval\n", within)
	fmt.Fprintf(out, "%10s%10s%10s%10s%12s\n", "stated", "looks", "mean %", "seen %", "inside %")
	for i, b := range c.bins {
		n := float64(b.looks)
		fmt.Fprintf(out, "%3d-%3d %%%11d%10.1f%10.1f%12.1f\n", 10*i, 10*i+10, b.looks, 100*b.said/n,
			100*float64(b.rises)/n, 100*float64(b.inside)/n)
	}
	all := c.sumCounts()
	n := math.Max(1, float64(all.looks))
	fmt.Fprintf(out, "figure: %s_forewarm_coverage_80 %.1f %%\n", prefix, 100*float64(all.inside)/n)
	fmt.Fprintf(out, "figure: %s_forewarm_brier %.4f\n", prefix, all.brier/n)
	fmt.Fprintf(out, "figure: %s_forewarm_log_loss %.4f\n", prefix, all.loss/n)
}

// checked is a look that waits for what comes of it.
type checked struct {
	at      int64
	outlook forecast.Outlook
	rise    int
}

// checks are the looks of one tenant that wait, in the order of time.
type checks struct {
	to   *calibration
	open []checked
	last int64 // second of the last look that was taken
}

// noteRise tells of a demand after an arrival.
func (c *checks) noteRise(now int64, demand int) {
	c.closeLooksUntil(now)
	for i := range c.open {
		o := &c.open[i]
		o.rise = max(o.rise, demand-o.outlook.Demand)
	}
}

// noteLook tells of a look.
func (c *checks) noteLook(now int64, o forecast.Outlook) {
	c.closeLooksUntil(now)
	if now < c.last+checkEvery || now <= c.to.from || now+within > c.to.last {
		return
	}
	c.last = now
	c.open = append(c.open, checked{at: now, outlook: o})
}

// closeLooksUntil closes the looks whose ten minutes are over before now.
func (c *checks) closeLooksUntil(now int64) {
	n := 0
	for n < len(c.open) && c.open[n].at+within < now {
		c.to.closeLook(c.open[n].outlook, c.open[n].rise)
		n++
	}
	c.open = append(c.open[:0], c.open[n:]...)
}
