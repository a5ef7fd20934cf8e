//go:build ignore

// Draw turns frontier.csv, which lies beside it, into frontier.svg:
//
//	cd docs/img && go run draw.go
package main

import (
	"encoding/csv"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	width, height = 400.0, 300.0 // of one panel
	left, top     = 60.0, 50.0
	gap           = 80.0
	mostWait      = 200.0 // seconds
)

var colours = map[string]string{"keep-alive": "#888888", "newsvendor": "#b8860b", "reference": "#3366aa",
	"Forewarm": "#c0392b"}

type curve struct {
	trace, policy string
	points        [][2]float64 // overhead, wait
}

func main() {
	curves, err := readCurves("frontier.csv")
	if err == nil {
		err = os.WriteFile("frontier.svg", []byte(drawChart(curves)), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func readCurves(name string) ([]curve, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var curves []curve
	for _, row := range rows[1:] {
		overhead, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			return nil, err
		}
		wait, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return nil, err
		}
		n := len(curves)
		if n == 0 || curves[n-1].trace != row[0] || curves[n-1].policy != row[1] {
			curves = append(curves, curve{trace: row[0], policy: row[1]})
			n++
		}
		curves[n-1].points = append(curves[n-1].points, [2]float64{overhead, wait})
	}
	return curves, nil
}

// xOf is logarithmic: from 2 to 20 percent fill a panel.
func xOf(panel int, overhead float64) float64 {
	return left + float64(panel)*(width+gap) + width*math.Log(overhead/2)/math.Log(10)
}

func yOf(wait float64) float64 { return top + height*(1-wait/mostWait) }

func drawChart(curves []curve) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="13">`+"\n",
		left+2*width+gap+20, top+height+90)
	fmt.Fprintln(&b,
		`<title>Mean wait against overhead on two traces</title><rect width="100%" height="100%" fill="white"/>`)
	var traces []string
	for _, c := range curves {
		if !slices.Contains(traces, c.trace) {
			traces = append(traces, c.trace)
			drawAxes(&b, len(traces)-1, c.trace)
		}
		drawCurve(&b, slices.Index(traces, c.trace), c)
	}
	drawLegend(&b)
	fmt.Fprintln(&b, "</svg>")
	return b.String()
}

func drawAxes(b *strings.Builder, panel int, trace string) {
	from, to := xOf(panel, 2), xOf(panel, 20)
	writeText(b, from, top-16, "start", trace+": mean wait in seconds (a boot takes 300)")
	for wait := 0.0; wait <= mostWait; wait += 50 {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#dddddd"/>`+"\n", from, yOf(wait), to)
		writeText(b, from-8, yOf(wait)+4, "end", fmt.Sprint(wait))
	}
	for _, overhead := range []float64{2, 3, 5, 10, 20} {
		fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="#dddddd"/>`+"\n", xOf(panel, overhead), yOf(0),
			yOf(mostWait))
		writeText(b, xOf(panel, overhead), yOf(0)+20, "middle", fmt.Sprintf("%g %%", overhead))
	}
	writeText(b, (from+to)/2, yOf(0)+40, "middle", "idle and booting GPU-hours, in % of busy ones")
}

func drawCurve(b *strings.Builder, panel int, c curve) {
	var path strings.Builder
	for i, p := range c.points {
		x, y := xOf(panel, p[0]), yOf(p[1])
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %.1f s at %g %%</title></circle>`+"\n",
			x, y, colours[c.policy], c.policy, p[1], p[0])
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colours[c.policy])
}

func drawLegend(b *strings.Builder) {
	x, y := left, top+height+70
	for _, policy := range []string{"keep-alive", "newsvendor", "reference", "Forewarm"} {
		fmt.Fprintf(b, `<path d="M%.0f %.0fh24" stroke="%s" stroke-width="3"/>`+"\n", x, y-4, colours[policy])
		writeText(b, x+30, y, "start", policy)
		x += 130
	}
}

func writeText(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}
