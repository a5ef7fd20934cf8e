package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var eventView = view[contract.Event]{
	name: func(x contract.Event) string { return strconv.FormatInt(x.Seq, 10) },
	columns: []column[contract.Event]{
		{head: "SEQ", right: true, cell: func(x contract.Event) string { return strconv.FormatInt(x.Seq, 10) }},
		{head: "TIME", cell: func(x contract.Event) string { return formatTime(x.Time) }},
		{head: "TYPE", cell: func(x contract.Event) string { return x.Type }},
		{head: "SUBJECT", cell: func(x contract.Event) string { return x.Subject }},
		{head: "VIA", cell: func(x contract.Event) string { return orDash(x.Via) }, wide: true},
		{head: "ACTOR", cell: func(x contract.Event) string { return orDash(firstNonEmpty(x.ActorName, x.Actor)) }, wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.Event) string { return orDash(firstNonEmpty(x.OrganizationName, x.OrganizationID)) },
			wide: true},
		{head: "POOL", cell: func(x contract.Event) string { return orDash(firstNonEmpty(x.PoolName, x.PoolID)) }, wide: true},
		{head: "REASON", cell: func(x contract.Event) string { return orDash(x.Reason) }, wide: true},
		{head: "MESSAGE", cell: func(x contract.Event) string { return orDash(x.Message) }},
	},
}

func (a *app) newEventsCommand() *cobra.Command {
	var follow bool
	var after int64
	var last int
	c := &cobra.Command{
		Use: "events", Short: "See what happened, and with -f what happens", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if after < 0 || last < 0 {
				return usageErrorf("forewarm events --help", "--after and --last must not be negative")
			}
			if follow && a.filter == nil && (a.flags.output == asJSON || a.flags.output == asYAML) {
				return usageErrorf("forewarm events -f -o jsonl", "-o %s cannot be followed: it has an end", a.flags.output)
			}
			api, err := a.newClient()
			if err != nil {
				return err
			}
			past, seq, err := readHistory(cmd, api, after, last)
			if err != nil {
				return err
			}
			if !follow {
				return showList(a, cmd, eventView, past)
			}
			for _, e := range past {
				if err := a.showEvent(cmd, e); err != nil {
					return err
				}
			}
			return a.followEvents(cmd, seq)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().Int64Var(&after, "after", 0, "only those after this number")
	c.Flags().IntVar(&last, "last", 50, "only the last so many; 0 means all")
	return c
}

// readHistory reads all events after a number and keeps the last of them.
func readHistory(cmd *cobra.Command, api *client.Client, after int64, last int) ([]contract.Event, int64, error) {
	var kept []contract.Event
	for {
		page, err := api.ListEvents(cmd.Context(), after, 0)
		if err != nil {
			return nil, 0, err
		}
		kept = append(kept, page.Items...)
		if over := len(kept) - last; last > 0 && over > 0 {
			kept = kept[over:]
		}
		if len(page.Items) == 0 || page.Next <= after {
			return kept, after, nil
		}
		after = page.Next
	}
}

// followEvents shows events until it is interrupted, and comes back after a failure
// that may pass.
func (a *app) followEvents(cmd *cobra.Command, seq int64) error {
	api, err := a.newStreamClient()
	if err != nil {
		return err
	}
	for {
		for e, err := range api.Events(cmd.Context(), seq) {
			if err != nil {
				if problem, ok := errors.AsType[*client.Error](err); ok && !problem.Problem.Retryable {
					return err
				}
				a.say(cmd, "The stream broke (%v); trying again.", err)
				break
			}
			seq = e.Seq
			if err := a.showEvent(cmd, e); err != nil {
				return err
			}
		}
		if err := a.pause(cmd.Context(), 2*time.Second); err != nil {
			return err
		}
	}
}

// showEvent writes one event as a line of its own.
func (a *app) showEvent(cmd *cobra.Command, e contract.Event) error {
	if a.filter != nil {
		return a.writeEncoded(cmd.OutOrStdout(), e)
	}
	switch a.flags.output {
	case jsonl, asJSON, asYAML, name:
		return showList(a, cmd, eventView, []contract.Event{e})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-24s  %s  %s\n", formatTime(e.Time), plainText(e.Type), plainText(e.Subject),
		plainText(e.Message))
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
