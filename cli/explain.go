package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newExplainCommand is the command that tells why something is as it is.
func (a *app) newExplainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain ALLOCATION|RESERVATION|SCHEDULE|NODE|PLAN",
		Short: "See why, what stands in the way, and what happens next", Args: exactArgs("ALLOCATION"),
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.resolveExplainable(cmd, args[0])
			if err != nil {
				return err
			}
			if strings.HasPrefix(id, "pln_") {
				got, err := api.Plan(cmd.Context(), id)
				if err != nil {
					return err
				}
				return a.showPlan(cmd, got)
			}
			got, err := explanationRoute(api, id)(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.showExplanation(cmd, got)
		},
	}
	c.AddCommand(a.explainInstead(a.newSingleReserveCommand()), a.explainInstead(a.newAllocateCommand()))
	return c
}

// resolveExplainable is bookingID that also takes a schedule, of which no booking has the
// name.
func (a *app) resolveExplainable(cmd *cobra.Command, ref string) (*client.Client, string, error) {
	if strings.HasPrefix(ref, "sch_") {
		api, err := a.newClient()
		return api, ref, err
	}
	api, id, err := a.bookingID(cmd, ref)
	if unknown, ok := errors.AsType[*Error](err); ok && unknown.Exit == ExitNotFound {
		if s, err := api.Schedule(cmd.Context(), ref); err == nil {
			return api, s.ID, nil
		}
	}
	return api, id, err
}

// explainInstead is a command that asks what would become of its request.
func (a *app) explainInstead(c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.Short, c.Annotations = "What would become of: "+strings.ToLower(c.Short[:1])+c.Short[1:], nil
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.asking = true
		return run(cmd, args)
	}
	return c
}

// askAbout explains a request instead of making it.
func (a *app) askAbout(cmd *cobra.Command, api *client.Client, in contract.ExplainRequest) error {
	got, err := api.Explain(a.withIdempotencyKey(cmd.Context()), in)
	if err != nil {
		return err
	}
	return a.showExplanation(cmd, got)
}

func (a *app) showExplanation(cmd *cobra.Command, x contract.Explanation) error {
	return a.showText(cmd, x.Subject, x, func(w io.Writer) { writeExplanation(w, x) })
}

func writeExplanation(w io.Writer, x contract.Explanation) {
	title := strings.ToUpper(x.State)
	if !x.Since.IsZero() {
		title += " " + formatDuration(x.At.Sub(x.Since).Round(time.Second))
	}
	if x.Degraded {
		title += " (degraded)"
	}
	_, _ = fmt.Fprintf(w, "%s · %s%s\n", title, plainText(x.Summary), mustClear(len(x.Blockers)))
	width := 0
	for _, b := range x.Blockers {
		width = max(width, len(b.Code))
	}
	for _, b := range x.Blockers {
		_, _ = fmt.Fprintf(w, "  %-*s  %s%s\n", width, b.Code, plainText(b.Message), clearsText(b, x.At))
		for _, e := range b.Evidence {
			_, _ = fmt.Fprintf(w, "  %-*s    %s\n", width, "", plainText(e))
		}
		if b.Fix != nil {
			_, _ = fmt.Fprintf(w, "  %-*s    %s\n", width, "",
				plainText(strings.TrimSuffix(b.Fix.Label+": "+b.Fix.Command, ": ")))
		}
	}
	if x.Wait != nil {
		_, _ = fmt.Fprintf(w, "Likely    in %s\n", waitText(*x.Wait))
	}
	for _, o := range x.Offers {
		_, _ = fmt.Fprintf(w, "Offer     %s\n", offerText(o))
	}
	for _, id := range x.Displaced {
		_, _ = fmt.Fprintf(w, "Displaces %s\n", id)
	}
	if x.Others > 0 {
		_, _ = fmt.Fprintf(w, "Displaces %s of others\n", formatCount(x.Others, "reservation"))
	}
	for _, s := range x.Next {
		_, _ = fmt.Fprintf(w, "Next      %s in %s: %s\n", formatTime(s.At), formatDuration(s.At.Sub(x.At).Round(time.Second)),
			plainText(s.Message))
	}
	for _, d := range x.Decisions {
		_, _ = fmt.Fprintf(w, "Because   %s %s  %s  (forewarm decisions show %s)\n", formatTime(d.Time), d.Kind,
			plainText(firstNonEmpty(d.Message, strings.ReplaceAll(d.Reason, "_", " "))), d.ID)
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
	in := func(t time.Time) string { return formatDuration(max(0, t.Sub(now)).Round(time.Second)) }
	early, late := in(b.ClearsAt.P10), in(b.ClearsAt.P90)
	if early == late {
		return "  clears in " + early
	}
	return fmt.Sprintf("  clears in %s to %s", early, late)
}
