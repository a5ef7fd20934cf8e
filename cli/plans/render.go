package plans

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// Show shows a plan.
func Show(a *app.App, cmd *cobra.Command, p contract.Plan) error {
	return output.Text(a, cmd, p.ID, p, func(w io.Writer) { writePlan(a, w, p) })
}

func writePlan(a *app.App, w io.Writer, p contract.Plan) {
	state := "valid until " + format.Time(p.ExpiresAt)
	switch p.State {
	case "applied":
		state = "applied " + format.Time(p.AppliedAt)
	case "expired":
		state = "expired " + format.Time(p.ExpiresAt)
	}
	gpus := ""
	if q := p.Quota; q.MaxGPUs > 0 || q.OrganizationID != "" { // a pool's is about nobody's
		gpus = fmt.Sprintf(" · %d→%d of %s", q.GPUsBefore, q.GPUsAfter, format.Count(q.MaxGPUs, "GPU"))
	}
	_, _ = fmt.Fprintf(w, "Plan %s (%s) · %s%s · cost %s\n", p.ID, p.Kind, state, gpus, format.Money(p.Cost))
	signs := map[string]string{"created": "+", "changed": "~", "ended": "-"}
	for _, row := range p.Diff {
		_, _ = fmt.Fprintln(w, strings.TrimSpace(signs[row.Change]+" "+row.Kind+" "+row.ID))
		for _, whole := range row.Fields {
			for _, f := range changedParts(whole) {
				_, _ = fmt.Fprintf(w, "    %-22s %s\n", format.Plain(f.Name), format.Plain(changeText(row.Change, f)))
			}
		}
	}
	if len(p.Diff) == 0 {
		_, _ = fmt.Fprintln(w, "Nothing would change.")
	}
	if m := madeBy(p); m.ID != "" {
		_, _ = fmt.Fprintln(w,
			strings.Join(slices.DeleteFunc([]string{"Answer   ", m.ID, m.Name, m.State},
				func(s string) bool { return s == "" }), " "))
	}
	for _, id := range p.Displaced {
		_, _ = fmt.Fprintf(w, "Displaces %s\n", id)
	}
	if p.Others > 0 {
		_, _ = fmt.Fprintf(w, "Displaces %s of others\n", format.Count(p.Others, "reservation"))
	}
	for _, r := range p.Reasons {
		_, _ = fmt.Fprintf(w, "No place  %s\n", format.Plain(r.Message))
	}
	for _, o := range p.Offers {
		_, _ = fmt.Fprintf(w, "Offer     %s\n", format.Offer(o))
	}
	if p.Wait != nil {
		_, _ = fmt.Fprintf(w, "Ready in  %s\n", format.Wait(*p.Wait))
	}
}

func changeText(change string, f contract.FieldChange) string {
	if change == "created" {
		return format.Value(f.To)
	}
	return format.Value(f.From) + " → " + format.Value(f.To)
}
