// Package decisions shows why things happened, and computes decisions again.
package decisions

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var decisionView = output.View[contract.Decision]{
	Name: func(x contract.Decision) string { return x.ID },
	Columns: []output.Column[contract.Decision]{
		{Head: "ID", Cell: func(x contract.Decision) string { return x.ID }},
		{Head: "TIME", Cell: func(x contract.Decision) string { return format.Time(x.Time) }},
		{Head: "KIND", Cell: func(x contract.Decision) string { return x.Kind }},
		{Head: "EVENT", Cell: func(x contract.Decision) string { return x.Event }},
		{Head: "SUBJECT", Cell: func(x contract.Decision) string { return x.Subject }},
		{Head: "POOL", Cell: func(x contract.Decision) string { return format.OrDash(cmp.Or(x.PoolName, x.PoolID)) },
			Wide: true},
		{Head: "ACTOR", Cell: func(x contract.Decision) string { return format.OrDash(cmp.Or(x.ActorName, x.Actor)) },
			Wide: true},
		{Head: "ENGINE", Cell: func(x contract.Decision) string { return format.OrDash(x.Engine) }, Wide: true},
		{Head: "REASON", Cell: func(x contract.Decision) string { return format.OrDash(x.Reason) }},
		{Head: "MESSAGE", Cell: func(x contract.Decision) string { return format.OrDash(x.Message) }},
	},
}

// NewCommand is the command decisions.
func NewCommand(a *app.App) *cobra.Command {
	var f client.DecisionFilter
	var last int
	listed := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List why things happened, newest first", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return exit.UsageErrorf("forewarm decisions list --help",
					"--last %d must be at least 0, which means all", last)
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			if f.Subject, err = names.Subject(a, cmd, api, f.Subject); err != nil {
				return err
			}
			var found []contract.Decision
			for d, err := range api.Decisions(cmd.Context(), f) {
				if err != nil {
					return err
				}
				if found = append(found, d); last > 0 && len(found) >= last {
					break
				}
			}
			return output.List(a, cmd, decisionView, found)
		},
	}
	listed.Flags().StringVar(&f.Subject, "subject", "", "only those about this: an id, or the name of a booking")
	listed.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	listed.Flags().StringVar(&f.Kind, "kind", "",
		"only admission, waitlist, refusal, promotion, displacement, prewarm, reclaim or placement")
	listed.Flags().IntVar(&last, "last", 50, "only the last so many; 0 means all")
	return app.NewGroupCommand("decisions", "See why, and compute it again", listed, newShowCommand(a),
		newReplayCommand(a))
}

func fetchDecision(a *app.App, cmd *cobra.Command, id string) (contract.Decision, error) {
	api, err := a.NewClient()
	if err != nil {
		return contract.Decision{}, err
	}
	return api.Decision(cmd.Context(), id)
}
