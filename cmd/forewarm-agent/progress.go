package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress tells how far a long command is: as a bar on a terminal, elsewhere in
// a line for every tenth.
type progress struct {
	out      io.Writer
	terminal bool
	told     int // percent
}

// barWidth is the length of the bar in characters.
const barWidth = 30

func newProgress(out io.Writer) *progress { return &progress{out: out, terminal: isTerminal(out)} }

// isTerminal reports whether a stream is a character device.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// setShare tells the share that is done, from 0 to 1.
func (p *progress) setShare(share float64) {
	percent := int(100 * min(max(share, 0), 1))
	if p.terminal && percent > p.told {
		p.told = percent
		full := percent * barWidth / 100
		_, _ = fmt.Fprintf(p.out, "\rreplaying %s%s %3d %%", strings.Repeat("▓", full),
			strings.Repeat("░", barWidth-full), percent)
	}
	if tenth := percent / 10 * 10; !p.terminal && tenth > p.told {
		p.told = tenth
		_, _ = fmt.Fprintf(p.out, "replaying: %d %%\n", tenth)
	}
}

// wipeBar wipes the bar, so that what follows begins on an empty line.
func (p *progress) wipeBar() {
	if p.terminal && p.told > 0 {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
