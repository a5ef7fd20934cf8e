package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var decisionView = view[contract.Decision]{
	name: func(x contract.Decision) string { return x.ID },
	columns: []column[contract.Decision]{
		{head: "ID", cell: func(x contract.Decision) string { return x.ID }},
		{head: "TIME", cell: func(x contract.Decision) string { return formatTime(x.Time) }},
		{head: "KIND", cell: func(x contract.Decision) string { return x.Kind }},
		{head: "EVENT", cell: func(x contract.Decision) string { return x.Event }},
		{head: "SUBJECT", cell: func(x contract.Decision) string { return x.Subject }},
		{head: "POOL", cell: func(x contract.Decision) string { return orDash(firstNonEmpty(x.PoolName, x.PoolID)) }, wide: true},
		{head: "ACTOR", cell: func(x contract.Decision) string { return orDash(firstNonEmpty(x.ActorName, x.Actor)) },
			wide: true},
		{head: "ENGINE", cell: func(x contract.Decision) string { return orDash(x.Engine) }, wide: true},
		{head: "REASON", cell: func(x contract.Decision) string { return orDash(x.Reason) }},
		{head: "MESSAGE", cell: func(x contract.Decision) string { return orDash(x.Message) }},
	},
}

func (a *app) newDecisionsCommand() *cobra.Command {
	var f client.DecisionFilter
	var last int
	listed := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List why things happened, newest first", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return usageErrorf("forewarm decisions list --help", "--last %d must be at least 0, which means all", last)
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			if f.Subject, err = a.resolveSubject(cmd, api, f.Subject); err != nil {
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
			return showList(a, cmd, decisionView, found)
		},
	}
	listed.Flags().StringVar(&f.Subject, "subject", "", "only those about this: an id, or the name of a booking")
	listed.Flags().StringVar(&f.Pool, "pool", "", "only those of this pool")
	listed.Flags().StringVar(&f.Kind, "kind", "",
		"only admission, waitlist, refusal, promotion, displacement, prewarm, reclaim or placement")
	listed.Flags().IntVar(&last, "last", 50, "only the last so many; 0 means all")
	return newGroupCommand("decisions", "See why, and compute it again", listed, a.newShowDecisionCommand(), a.newReplayDecisionCommand())
}

func (a *app) fetchDecision(cmd *cobra.Command, id string) (contract.Decision, error) {
	api, err := a.newClient()
	if err != nil {
		return contract.Decision{}, err
	}
	return api.Decision(cmd.Context(), id)
}

func (a *app) newShowDecisionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show DECISION", Short: "Show a decision with its record", Args: exactArgs("DECISION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.fetchDecision(cmd, args[0])
			if err != nil {
				return err
			}
			if a.flags.output != table && a.flags.output != wide {
				return showOne(a, cmd, decisionView, d)
			}
			if err := showOne(a, cmd, decisionView, d); err != nil {
				return err
			}
			return writeRecord(cmd.OutOrStdout(), d)
		},
	}
}

func writeRecord(w io.Writer, d contract.Decision) error {
	text := "its record holds the work of others and was left out"
	switch {
	case d.Redacted:
	case len(d.Record) == 0:
		text = "its record was too long to be kept"
	default:
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, d.Record, "", "  "); err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		text = plainLines(pretty.String())
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
