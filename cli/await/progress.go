package await

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
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
	id, phase := x.name(), x.text
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
	id      string
	label   string // in place of the id, for people; empty: the id
	next    string // a command that shows more of what failed; empty: the usual
	several bool   // it is not one thing, and its text counts
	state   string
	text    string // the phase, as people are told
	done    bool
	wait    *contract.WaitEstimate // how much longer, if anything is known of that
}

// whatNext are commands that show more of what failed.
func (x watched) whatNext() []string {
	const events = "forewarm events --last 20"
	if x.next != "" {
		return []string{x.next, events}
	}
	return []string{events, "forewarm " + names.NounOf(x.id) + " show " + x.id}
}

// name is what people are told that it is.
func (x watched) name() string { return cmp.Or(x.label, x.id) }

// sentence says in which state it is.
func (x watched) sentence(verb string) string {
	if x.several {
		return x.name() + ": " + x.text
	}
	return x.name() + " " + verb + " " + x.text
}

// remainingText says how much longer it takes.
func (x watched) remainingText() string {
	if x.wait == nil || x.done {
		return ""
	}
	if in := format.ReadyIn(x.wait); in != "now" {
		return ", ready in about " + in
	}
	return ", about to be ready"
}
