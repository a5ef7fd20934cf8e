package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// Show shows an explanation.
func Show(a *app.App, cmd *cobra.Command, x contract.Explanation) error {
	return output.Text(a, cmd, x.Subject, x, func(w io.Writer) { writeExplanation(w, x) })
}

func writeExplanation(w io.Writer, x contract.Explanation) {
	title := strings.ToUpper(x.State)
	if x.Kind == "pool" { // which has no states, but a use
		title = fmt.Sprintf("POOL (use: %s)", x.State)
	} else if !x.Since.IsZero() {
		title += " " + flags.Span(x.At.Sub(x.Since).Round(time.Second)).LongText()
	}
	if x.Degraded {
		title += " (degraded)"
	}
	_, _ = fmt.Fprintf(w, "%s · %s%s\n", title, format.Plain(x.Summary), mustClear(len(x.Blockers)))
	width := 0
	for _, b := range x.Blockers {
		width = max(width, len(b.Code))
	}
	for _, b := range x.Blockers {
		_, _ = fmt.Fprintf(w, "  %-*s  %s%s\n", width, b.Code, format.Plain(b.Message), clearsText(b, x.At))
		for _, e := range b.Evidence {
			_, _ = fmt.Fprintf(w, "  %-*s    %s\n", width, "", format.Plain(e))
		}
		if b.Fix != nil {
			_, _ = fmt.Fprintf(w, "  %-*s    %s\n", width, "",
				format.Plain(strings.TrimSuffix(b.Fix.Label+": "+b.Fix.Command, ": ")))
		}
	}
	for _, waits := range x.Waits {
		_, _ = fmt.Fprintf(w, "Waited    for %-12s  %s\n", format.Plain(waits.Reason), format.Waits(waits))
	}
	if x.Wait != nil {
		_, _ = fmt.Fprintf(w, "Likely    in %s\n", format.Wait(*x.Wait))
	}
	for _, o := range x.Offers {
		_, _ = fmt.Fprintf(w, "Offer     %s\n", format.Offer(o))
	}
	for _, id := range x.Displaced {
		_, _ = fmt.Fprintf(w, "Displaces %s\n", id)
	}
	if x.Others > 0 {
		_, _ = fmt.Fprintf(w, "Displaces %s of others\n", format.Count(x.Others, "reservation"))
	}
	for _, s := range x.Next {
		_,
			_ =
			fmt.Fprintf(w, "Next      %s in %s: %s\n", format.Time(s.At),
				flags.Span(s.At.Sub(x.At).Round(time.Second)).LongText(),
				format.Plain(s.Message))
	}
	for _, d := range x.Decisions {
		_, _ = fmt.Fprintf(w, "Because   %s %s  %s  (forewarm decisions show %s)\n", format.Time(d.Time), d.Kind,
			format.Plain(cmp.Or(d.Message, strings.ReplaceAll(d.Reason, "_", " "))), d.ID)
	}
}

func mustClear(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " · 1 blocker"
	default:
		return fmt.Sprintf(" · %d blockers, all must clear", n)
	}
}

// clearsText says when a blocker goes, if time alone makes it.
func clearsText(b contract.BlockedBy, now time.Time) string {
	if b.ClearsAt == nil {
		return ""
	}
	in := func(t time.Time) string { return format.Duration(max(0, t.Sub(now)).Round(time.Second)) }
	early, late := in(b.ClearsAt.P10), in(b.ClearsAt.P90)
	if early == late {
		return "  clears in " + early
	}
	return fmt.Sprintf("  clears in %s to %s", early, late)
}
