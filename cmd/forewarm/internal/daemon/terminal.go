package daemon

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// terminal is where a run tells what it does: coloured on a screen, plain in a
// file. It is safe for concurrent use.
type terminal struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	began  time.Time
}

func newTerminal(out io.Writer) *terminal {
	t := &terminal{out: out}
	if f, ok := out.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		t.colour = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return t
}

// The colours of parts of the story.
const (
	dim    = "2"
	bold   = "1"
	green  = "32"
	yellow = "33"
	blue   = "34"
	violet = "35"
	cyan   = "36"
	red    = "31"
)

func (t *terminal) colourText(text, code string) string {
	if !t.colour || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// printLine prints one line.
func (t *terminal) printLine(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(t.out, text) // a closed screen is no reason to stop serving
}

// printNote prints a named fact of the start.
func (t *terminal) printNote(name, text string) {
	t.printLine(fmt.Sprintf("  %s %-8s %s", t.colourText("✓", green), name, text))
}

// printLack prints what the start goes without.
func (t *terminal) printLack(name, text string) {
	t.printLine(fmt.Sprintf("  %s %-8s %s", t.colourText("!", yellow), name, text))
}

// printStep prints one step of the story: when, who, what.
func (t *terminal) printStep(at time.Time, who, code, text string) {
	since := at.Sub(t.began).Round(time.Second)
	if since < 0 {
		since = 0
	}
	stamp := fmt.Sprintf("+%d:%02d", int(since.Minutes()), int(since.Seconds())%60)
	t.printLine(
		fmt.Sprintf("%s %s %s", t.colourText(fmt.Sprintf("%7s", stamp), dim),
			t.colourText(fmt.Sprintf("%-12s", who), code),
			strings.TrimSpace(text)))
}
