package show

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
)

// drawing is an SVG under way. Its lengths are in CSS pixels. Colours come from
// the page's style sheet, by class, so that they follow light and dark.
type drawing struct{ b strings.Builder }

// newDrawing begins a drawing with a name for those who cannot see it.
func newDrawing(width, height float64, name string) *drawing {
	d := &drawing{}
	fmt.Fprintf(&d.b, `<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, px(width), px(height),
		html.EscapeString(name))
	return d
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

// path joins points by straight lines.
func (d *drawing) path(class string, points []spot) {
	if len(points) < 2 {
		return
	}
	var at []string
	for _, p := range points {
		at = append(at, px(p.x)+","+px(p.y))
	}
	fmt.Fprintf(&d.b, `<polyline class="%s" points="%s"/>`, class, strings.Join(at, " "))
}

// rect draws a box with a note that shows when it is pointed at.
func (d *drawing) rect(class string, at spot, width, height float64, note string) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		class, px(at.x), px(at.y), px(width), px(height), html.EscapeString(note))
}

// text writes where anchor says: start, middle or end of the text.
func (d *drawing) text(anchor string, at spot, text string) {
	fmt.Fprintf(&d.b, `<text x="%s" y="%s" text-anchor="%s">%s</text>`, px(at.x), px(at.y), anchor,
		html.EscapeString(text))
}

// mark draws a small figure of the given radius: colour alone tells too few
// people apart.
func (d *drawing) mark(class string, at spot, r float64, note string) {
	shape, ok := shapes[class]
	if !ok {
		fmt.Fprintf(&d.b, `<circle class="mark %s" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`,
			class, px(at.x), px(at.y), px(r), html.EscapeString(note))
		return
	}
	var corners []string
	for _, c := range shape {
		corners = append(corners, px(at.x+r*c.x)+","+px(at.y+r*c.y))
	}
	fmt.Fprintf(&d.b, `<polygon class="mark %s" points="%s"><title>%s</title></polygon>`, class,
		strings.Join(corners, " "), html.EscapeString(note))
}

// shapes are the corners of the marks that are no circles, for a radius of 1.
var shapes = map[string][]spot{
	"keep_alive": {{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}},
	"last_week":  {{0, -1.2}, {1.1, .8}, {-1.1, .8}},
	"schedule":   {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
	"reactive": {{-1, -.4}, {-.4, -.4}, {-.4, -1}, {.4, -1}, {.4, -.4}, {1, -.4}, {1, .4}, {.4, .4}, {.4, 1},
		{-.4, 1}, {-.4, .4}, {-1, .4}},
	"foresight": {{0, 1.2}, {1.1, -.8}, {-1.1, -.8}},
}

// spot is a place in a drawing: to the right and down from its corner.
type spot struct{ x, y float64 }

// done ends the drawing. All that was written from outside is escaped.
func (d *drawing) done() template.HTML {
	return template.HTML(d.b.String() + "</svg>")
}

// px writes a length to a tenth.
func px(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
