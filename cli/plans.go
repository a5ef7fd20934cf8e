package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newPlanCommand holds the commands that change something, each made to show what it would
// change instead.
func (a *app) newPlanCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show PLAN", Short: "Show a plan again", Args: exactArgs("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Plan(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showPlan(cmd, got)
		},
	}
	c := newGroupCommand("plan", "See what a command would do, then apply exactly that", show)
	c.Long = "See what a command would do, then apply exactly that.\n\n" + planText
	for _, verb := range []*cobra.Command{a.newSingleReserveCommand(), a.newAllocateCommand(), a.newClaimReservationCommand(), a.newReleaseCommand(),
		a.newCancelReservationCommand(), a.newSetQuotaCommand(), a.newEditPoolCommand()} {
		c.AddCommand(a.planInstead(verb))
	}
	return c
}

// planText is what every plan has in common.
const planText = `A plan shows every row that would be made, changed or ended, what it costs, the quota before and after, what it displaces,
and, where there is no room, why and what there is instead. Making one changes nothing and keeps no place. For five minutes
forewarm apply does exactly what it shows, or nothing: if something else changed meanwhile, it says what.`

// planInstead is a command that makes a plan of what it would do.
func (a *app) planInstead(c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.Short = "Plan: " + strings.ToLower(c.Short[:1]) + c.Short[1:]
	switch c.Name() {
	case "set":
		c.Use = strings.Replace(c.Use, "set", "quota", 1)
	case "edit":
		c.Use = strings.Replace(c.Use, "edit", "pool", 1)
	}
	c.Long = firstNonEmpty(c.Long, c.Short+".") +
		"\n\nIt is shown and not done: forewarm apply does it. What a plan is: forewarm plan --help"
	c.Annotations = nil // a plan is a dry run, and there is nothing to wait for
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.planning = true
		return run(cmd, args)
	}
	return c
}

// makePlan asks for a plan and shows it.
func (a *app) makePlan(cmd *cobra.Command, api *client.Client, kind string, request any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	got, err := api.CreatePlan(a.withIdempotencyKey(cmd.Context()), contract.PlanCreate{Kind: kind, Request: body})
	if err != nil {
		return err
	}
	if err := a.showPlan(cmd, got); err != nil {
		return err
	}
	if a.flags.dryRun {
		a.say(cmd, "Dry run: nothing was changed.")
	}
	a.say(cmd, "Next:  forewarm apply %s", got.ID)
	return nil
}

func (a *app) showPlan(cmd *cobra.Command, p contract.Plan) error {
	return a.showText(cmd, p.ID, p, func(w io.Writer) { a.writePlan(w, p) })
}

// showText shows one thing that is told in sentences, not in columns.
func (a *app) showText(cmd *cobra.Command, id string, item any, text func(io.Writer)) error {
	w := cmd.OutOrStdout()
	switch a.flags.output {
	case asJSON, asYAML:
		return a.writeEncoded(w, item)
	case jsonl:
		return a.writeLine(w, item)
	case name:
		_, err := fmt.Fprintln(w, id)
		return err
	}
	var b strings.Builder
	text(&b)
	if _, err := io.WriteString(w, plainLines(b.String())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

func (a *app) writePlan(w io.Writer, p contract.Plan) {
	state := "valid until " + formatTime(p.ExpiresAt)
	switch p.State {
	case "applied":
		state = "applied " + formatTime(p.AppliedAt)
	case "expired":
		state = "expired " + formatTime(p.ExpiresAt)
	}
	gpus := ""
	if q := p.Quota; q.MaxGPUs > 0 || q.OrganizationID != "" { // a pool's is about nobody's
		gpus = fmt.Sprintf(" · %d→%d of %s", q.GPUsBefore, q.GPUsAfter, formatCount(q.MaxGPUs, "GPU"))
	}
	_, _ = fmt.Fprintf(w, "Plan %s (%s) · %s%s · cost %s\n", p.ID, p.Kind, state, gpus, formatMoney(p.Cost))
	signs := map[string]string{"created": "+", "changed": "~", "ended": "-"}
	for _, row := range p.Diff {
		_, _ = fmt.Fprintln(w, strings.TrimSpace(signs[row.Change]+" "+row.Kind+" "+row.ID))
		for _, f := range row.Fields {
			_, _ = fmt.Fprintf(w, "    %-22s %s\n", plainText(f.Name), plainText(changeText(row.Change, f)))
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
		_, _ = fmt.Fprintf(w, "Displaces %s of others\n", formatCount(p.Others, "reservation"))
	}
	for _, r := range p.Reasons {
		_, _ = fmt.Fprintf(w, "No place  %s\n", plainText(r.Message))
	}
	for _, o := range p.Offers {
		_, _ = fmt.Fprintf(w, "Offer     %s\n", offerText(o))
	}
	if p.Wait != nil {
		_, _ = fmt.Fprintf(w, "Ready in  %s\n", waitText(*p.Wait))
	}
}

func changeText(change string, f contract.FieldChange) string {
	if change == "created" {
		return bareValue(f.To)
	}
	return bareValue(f.From) + " → " + bareValue(f.To)
}

// bareValue is a JSON value as people write it.
func bareValue(v json.RawMessage) string {
	var text string
	if err := json.Unmarshal(v, &text); err == nil {
		if text == "" {
			return "-"
		}
		return text
	}
	var m contract.Money
	if err := json.Unmarshal(v, &m); err == nil && m.Amount != "" {
		return formatMoney(m)
	}
	if string(v) == "null" {
		return "-"
	}
	return string(v)
}

func offerText(o contract.Offer) string {
	return fmt.Sprintf("%s in %s from %s to %s", formatCount(o.GPUs, "GPU"), firstNonEmpty(o.PoolName, o.PoolID), formatTime(o.Start),
		formatTime(o.End))
}

// waitText shows an interval and what it rests on.
func waitText(x contract.WaitEstimate) string {
	at := func(s float64) string {
		return formatDuration(time.Duration(s * float64(time.Second)).Round(time.Second))
	}
	return fmt.Sprintf("%s, likely %s to %s (80%%, %s)", at(x.P50Seconds), at(x.P10Seconds), at(x.P90Seconds),
		plainText(x.Basis))
}

// showAgain is a dry run of applying: a plan shows what it would do.
func (a *app) showAgain(cmd *cobra.Command, api *client.Client, id string) error {
	got, err := api.Plan(cmd.Context(), id)
	if err != nil {
		return err
	}
	a.say(cmd, "Dry run: nothing was changed.")
	return a.showPlan(cmd, got)
}

func (a *app) newApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply PLAN", Short: "Do exactly what a plan shows, or nothing", Args: exactArgs("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			if a.flags.dryRun {
				return a.showAgain(cmd, api, args[0])
			}
			got, err := api.ApplyPlan(a.withIdempotencyKey(cmd.Context()), args[0])
			if err != nil {
				return err
			}
			return a.showApplied(cmd, got)
		},
	}
}

// showApplied shows a plan that was applied, and what it made.
func (a *app) showApplied(cmd *cobra.Command, p contract.Plan) error {
	made := madeBy(p)
	if a.flags.output == name && made.ID != "" {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), plainText(made.ID))
		return err
	}
	if err := a.showPlan(cmd, p); err != nil {
		return err
	}
	switch noun := nounOf(made.ID); {
	case made.ID == "":
	case noun == "allocations":
		a.say(cmd, "%s", nextCommands(contract.Allocation{ID: made.ID, State: made.State}))
	case made.State == "booked" || made.State == "waitlisted" || made.State == "warming":
		a.say(cmd, "Next:  forewarm reservations claim %s  ·  forewarm reservations cancel %s", made.ID, made.ID)
	}
	return nil
}

// made is what a plan's answer is about.
type made struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// madeBy is what an applied plan made or changed; its id is empty when that is
// not one thing.
func madeBy(p contract.Plan) (m made) {
	if p.State != "applied" || json.Unmarshal(p.Answer, &m) != nil {
		return made{}
	}
	return m
}
