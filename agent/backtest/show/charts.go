package show

import (
	"fmt"
	"html/template"
	"math"

	"github.com/forewarm/forewarm/agent/backtest"
)

// frame is the part of a drawing that data stands in.
type frame struct{ left, top, right, bottom float64 }

// frontierChart draws mean wait against overhead, on a logarithmic scale since
// rules differ by factors. It is empty where nothing has an overhead.
func frontierChart(r backtest.Report) template.HTML {
	points := pointsOf(r)
	if len(points) == 0 {
		return ""
	}
	s := newScale(points)
	d := newDrawing(760, 400, "Mean wait against overhead, by policy")
	s.drawAxes(d)
	for _, policy := range []string{backtest.KeepAlive, backtest.LastWeek, backtest.Forewarm} {
		var line []spot
		for _, p := range points {
			if p.Policy == policy {
				line = append(line, s.spotOf(p))
			}
		}
		d.path("curve "+policy, line)
	}
	for _, p := range points {
		radius := 3.5
		if p.Chosen {
			radius = 6
		}
		note := fmt.Sprintf("%s %s: overhead %s, mean wait %s, zero-wait %s", policyName(p.Policy), p.Setting,
			formatPercent(&p.Overhead), formatWait(&p.Mean), formatPercent(&p.ZeroWait))
		d.mark(p.Policy, s.spotOf(p), radius, note)
	}
	drawLegend(d, spot{s.frame.left, 16})
	return d.done()
}

// pointsOf are the points of the frontier and the rows that have only one run.
func pointsOf(r backtest.Report) []backtest.Point {
	var points []backtest.Point
	for _, p := range r.Policies {
		switch p.Policy {
		case backtest.Reactive, backtest.Schedule, backtest.Foresight:
			if p.Overhead != nil && p.Mean != nil && p.ZeroWait != nil {
				points = append(points, backtest.Point{Policy: p.Policy, Overhead: *p.Overhead, Mean: *p.Mean,
					ZeroWait: *p.ZeroWait, Chosen: true})
			}
		}
	}
	points = append(points, r.Frontier...)
	visible := points[:0]
	for _, p := range points {
		if p.Overhead > 0 {
			visible = append(visible, p)
		}
	}
	return visible
}

// scale turns overhead and wait into places.
type scale struct {
	frame     frame
	low, high float64 // overhead, powers of ten
	longest   float64 // seconds
	step      float64 // between two lines, in seconds
}

func newScale(points []backtest.Point) scale {
	s := scale{frame: frame{64, 36, 740, 352}, low: math.Inf(1), high: math.Inf(-1)}
	for _, p := range points {
		s.low, s.high = min(s.low, math.Log10(p.Overhead)), max(s.high, math.Log10(p.Overhead))
		s.longest = max(s.longest, p.Mean)
	}
	s.low, s.high = s.low-0.1, s.high+0.1
	s.step = stepOf(max(s.longest, 1))
	s.longest = s.step * math.Ceil(max(s.longest, 1)/s.step)
	return s
}

// stepOf returns a round step that divides a time into at most six.
func stepOf(seconds float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400} {
		if seconds/step <= 6 {
			return step
		}
	}
	return math.Ceil(seconds / 6)
}

func (s scale) spotOf(p backtest.Point) spot { return spot{s.x(math.Log10(p.Overhead)), s.y(p.Mean)} }

func (s scale) x(power float64) float64 {
	return s.frame.left + (power-s.low)/(s.high-s.low)*(s.frame.right-s.frame.left)
}

func (s scale) y(seconds float64) float64 {
	return s.frame.bottom - seconds/s.longest*(s.frame.bottom-s.frame.top)
}

func (s scale) drawAxes(d *drawing) {
	for y := 0.0; y <= s.longest; y += s.step {
		d.line("grid", s.frame.left, s.y(y), s.frame.right, s.y(y))
		d.text("end", spot{s.frame.left - 8, s.y(y) + 4}, formatWait(&y))
	}
	for power := math.Floor(s.low); power <= s.high; power++ {
		for _, digit := range []float64{1, 2, 5} {
			x := power + math.Log10(digit)
			if x < s.low || x > s.high {
				continue
			}
			d.line("grid", s.x(x), s.frame.top, s.x(x), s.frame.bottom)
			d.text("middle", spot{s.x(x), s.frame.bottom + 18}, fmt.Sprintf("%g%%", digit*math.Pow(10, power)))
		}
	}
	d.text("middle", spot{(s.frame.left + s.frame.right) / 2, s.frame.bottom + 40},
		"overhead: GPU-hours idle or booting, per 100 that jobs used")
}

// drawLegend names the marks in a row.
func drawLegend(d *drawing, at spot) {
	for _, policy := range []string{
		backtest.Forewarm, backtest.KeepAlive, backtest.LastWeek, backtest.Schedule, backtest.Reactive,
		backtest.Foresight,
	} {
		name := policyName(policy)
		d.mark(policy, at, 5, name)
		d.text("start", spot{at.x + 11, at.y + 4}, name)
		at.x += 30 + 7*float64(len([]rune(name)))
	}
}

// calibrationChart draws what was said against what came true. It is empty where
// nothing was said.
func calibrationChart(r backtest.Report) template.HTML {
	if len(r.Calibration) == 0 {
		return ""
	}
	f := frame{56, 12, 356, 312}
	at := func(said, seen float64) spot {
		return spot{f.left + said*(f.right-f.left), f.bottom - seen*(f.bottom-f.top)}
	}
	d := newDrawing(400, 360, "Chance that was said against share that came true")
	for share := 0.0; share <= 1; share += 0.25 {
		low, high := at(share, 0), at(0, share)
		d.line("grid", low.x, f.top, low.x, f.bottom)
		d.line("grid", f.left, high.y, f.right, high.y)
		d.text("middle", spot{low.x, f.bottom + 18}, fmt.Sprintf("%.0f%%", 100*share))
		d.text("end", spot{f.left - 8, high.y + 4}, fmt.Sprintf("%.0f%%", 100*share))
	}
	d.text("middle", spot{(f.left + f.right) / 2, f.bottom + 38}, "said")
	d.line("even", f.left, f.bottom, f.right, f.top)
	var line []spot
	most := 0
	for _, c := range r.Calibration {
		line = append(line, at(c.Stated, c.Seen))
		most = max(most, c.N)
	}
	d.path("curve forewarm", line)
	for i, c := range r.Calibration {
		radius := 3 + 6*math.Sqrt(float64(c.N)/float64(most))
		d.mark("forewarm", line[i], radius, fmt.Sprintf("said %.0f%%, seen %.0f%%, n %s", 100*c.Stated, 100*c.Seen,
			formatCount(c.N)))
	}
	return d.done()
}

// shades is how many depths of colour a week has, beside none.
const shades = 5

// weekChart draws the hours of the week, the darker the more waiting remains. It
// is empty where none does.
func weekChart(r backtest.Report) template.HTML {
	most := 0.0
	for _, day := range r.Week {
		for _, h := range day {
			most = max(most, h.WaitHours)
		}
	}
	if most == 0 {
		return ""
	}
	const width, height, left, top = 28, 24, 44, 22
	d := newDrawing(left+24*width+4, top+7*height+34, "Waiting that remains, by hour of the week")
	for hour := 0; hour < 24; hour += 3 {
		d.text("start", spot{left + float64(hour)*width, 14}, fmt.Sprintf("%02d:00", hour))
	}
	for i, day := range r.Week {
		y := top + float64(i)*height
		d.text("end", spot{left - 8, y + 16}, backtest.Weekdays()[i])
		for hour, h := range day {
			shade := int(math.Ceil(shades * h.WaitHours / most))
			note := fmt.Sprintf("%s %02d:00: %s h of waiting, %s jobs", backtest.Weekdays()[i], hour,
				formatNumber(&h.WaitHours), formatCount(h.Jobs))
			d.rect(fmt.Sprintf("cell s%d", shade), spot{left + float64(hour)*width, y}, width-1, height-1, note)
		}
	}
	weekLegend(d, spot{left, top + 7*height + 10}, most)
	return d.done()
}

func weekLegend(d *drawing, at spot, most float64) {
	d.text("start", spot{at.x, at.y + 13}, "none")
	at.x += 40
	for shade := range shades + 1 {
		d.rect(fmt.Sprintf("cell s%d", shade), spot{at.x + float64(shade)*24, at.y}, 23, 16, "")
	}
	d.text("start", spot{at.x + (shades+1)*24 + 8, at.y + 13},
		formatNumber(&most)+" hours of waiting in this hour of the week")
}
