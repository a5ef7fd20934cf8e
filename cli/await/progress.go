package await

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// progress shows the phases that something goes through: one line that is
// rewritten at a terminal, one line for each phase elsewhere.
type progress struct {
	w     io.Writer
	live  bool
	quiet bool
	since time.Time
	last  string
}

func newProgress(a *app.App, cmd *cobra.Command) *progress {
	return &progress{w: cmd.ErrOrStderr(), live: a.Terminal(cmd.ErrOrStderr()), quiet: a.Flags.Quiet,
		since: a.Clock.Now()}
}

func (p *progress) show(x watched, now time.Time) {
	id, phase := x.id, x.text
	switch {
	case p.quiet:
	case p.live:
		_,
			_ =
			fmt.Fprintf(p.w, "\r\x1b[K◐ %s  %s  %s%s", format.Plain(id), format.Plain(phase),
				format.Duration(now.Sub(p.since)), x.remainingText())
	case phase != p.last:
		_, _ = fmt.Fprintf(p.w, "%s  %s%s\n", format.Plain(id), format.Plain(phase), x.remainingText())
	}
	p.last = phase
}

func (p *progress) end() {
	if p.live && !p.quiet && p.last != "" {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// watched is something whose state is waited for.
type watched struct {
	id    string
	state string
	text  string // the phase, as people are told
	done  bool
	wait  *contract.WaitEstimate // how much longer, if anything is known of that
}

// remainingText says how much longer it takes.
func (x watched) remainingText() string {
	if x.wait == nil || x.done {
		return ""
	}
	return ", ready in about " + format.ReadyIn(x.wait)
}
