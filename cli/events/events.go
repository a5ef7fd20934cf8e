// Package events shows the journal.
package events

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var eventView = output.View[contract.Event]{
	Name: func(x contract.Event) string { return strconv.FormatInt(x.Seq, 10) },
	Columns: []output.Column[contract.Event]{
		{Head: "SEQ", Right: true, Cell: func(x contract.Event) string { return strconv.FormatInt(x.Seq, 10) }},
		{Head: "TIME", Cell: func(x contract.Event) string { return format.Time(x.Time) }},
		{Head: "TYPE", Cell: func(x contract.Event) string { return x.Type }},
		{Head: "SUBJECT", Cell: func(x contract.Event) string { return x.Subject }},
		{Head: "VIA", Cell: func(x contract.Event) string { return format.OrDash(x.Via) }, Wide: true},
		{Head: "ACTOR", Cell: func(x contract.Event) string { return format.OrDash(cmp.Or(x.ActorName, x.Actor)) },
			Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.Event) string { return format.OrDash(cmp.Or(x.OrganizationName, x.OrganizationID)) },
			Wide: true},
		{Head: "POOL", Cell: func(x contract.Event) string { return format.OrDash(cmp.Or(x.PoolName, x.PoolID)) },
			Wide: true},
		{Head: "REASON", Cell: func(x contract.Event) string { return format.OrDash(x.Reason) }, Wide: true},
		{Head: "MESSAGE", Cell: func(x contract.Event) string { return format.OrDash(messageText(x)) }},
	},
}

// NewCommand is the command events.
func NewCommand(a *app.App) *cobra.Command {
	var q Query
	c := &cobra.Command{
		Use: "events", Short: "See what happened; with -f, follow what happens", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := q.Check(a, cmd); err != nil {
				return err
			}
			return q.Show(a, cmd)
		},
	}
	q.AddFlags(c)
	c.Flags().StringVar(&q.Subject, "subject", "", "only those about what has this id, such as a node's")
	return c
}

// Query says which events a command shows.
type Query struct {
	Subject string // only those about what has this id; empty: all
	follow  bool
	after   int64
	last    newest
}

// AddFlags adds the flags that say which events, but for their subject.
func (q *Query) AddFlags(c *cobra.Command) {
	c.Flags().BoolVarP(&q.follow, "follow", "f", false, "keep showing new events")
	c.Flags().Int64Var(&q.after, "after", 0, "only those after this number")
	q.last.count = 50
	c.Flags().Var(&q.last, "last", "show only this many of the newest, or those of a period up to now, such as 5m; 0 "+
		"shows all")
}

// Check refuses flags that make no sense together.
func (q *Query) Check(a *app.App, cmd *cobra.Command) error {
	if q.after < 0 || q.last.count < 0 {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "--after and --last must not be negative")
	}
	if q.follow && a.Filter == nil && (a.Flags.Output == output.JSON || a.Flags.Output == output.YAML) {
		line := cmd.CommandPath()
		for _, arg := range cmd.Flags().Args() {
			line += " " + flags.Quote(arg)
		}
		return exit.UsageErrorf(line+" -f -o jsonl", "-o %s cannot be followed: it has an end", a.Flags.Output)
	}
	return nil
}

// Show shows the events, and with --follow those that come.
func (q *Query) Show(a *app.App, cmd *cobra.Command) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	filter := client.EventFilter{After: q.after, Subject: q.Subject}
	past, err := readHistory(cmd, api, &filter, q.last.count, q.last.from(a.Clock.Now()))
	if err != nil {
		return err
	}
	if !q.follow {
		return output.List(a, cmd, eventView, past)
	}
	for _, e := range past {
		if err := showEvent(a, cmd, e); err != nil {
			return err
		}
	}
	return followEvents(a, cmd, filter)
}

// readHistory reads all events since a time that match a filter and keeps the last of them. The filter goes on behind
// them.
func readHistory(cmd *cobra.Command, api *client.Client, f *client.EventFilter, last int,
	since time.Time) ([]contract.Event, error) {
	var kept []contract.Event
	for {
		page, err := api.FindEvents(cmd.Context(), *f, 0)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Items {
			if !e.Time.Before(since) {
				kept = append(kept, e)
			}
		}
		if over := len(kept) - last; last > 0 && over > 0 {
			kept = kept[over:]
		}
		if len(page.Items) == 0 || page.Next <= f.After {
			return kept, nil
		}
		f.After = page.Next
	}
}

// followEvents shows events until it is interrupted, and comes back after a failure
// that may pass.
func followEvents(a *app.App, cmd *cobra.Command, f client.EventFilter) error {
	api, err := a.NewStreamClient()
	if err != nil {
		return err
	}
	for {
		for e, err := range api.FollowEvents(cmd.Context(), f) {
			if err != nil {
				if problem, ok := errors.AsType[*client.Error](err); ok && !problem.Problem.Retryable {
					return err
				}
				a.Say(cmd, "The stream ended: %s; trying again.", describeBreak(err))
				break
			}
			f.After = e.Seq
			if err := showEvent(a, cmd, e); err != nil {
				return err
			}
		}
		if err := a.Pause(cmd.Context(), 2*time.Second); err != nil {
			return err
		}
	}
}

// messageText is what an event says, and of one that says nothing why it happened.
func messageText(e contract.Event) string {
	return cmp.Or(e.Message, strings.ReplaceAll(e.Reason, "_", " "))
}

// showEvent writes one event as a line of its own.
func showEvent(a *app.App, cmd *cobra.Command, e contract.Event) error {
	if a.Filter != nil {
		return output.WriteEncoded(a, cmd.OutOrStdout(), e)
	}
	switch a.Flags.Output {
	case output.JSONLines, output.JSON, output.YAML, output.Name:
		return output.List(a, cmd, eventView, []contract.Event{e})
	}
	_, err :=
		fmt.Fprintf(cmd.OutOrStdout(), "%s  %-24s  %s  %s\n", format.Time(e.Time), format.Plain(e.Type),
			format.Plain(e.Subject),
			format.Plain(messageText(e)))
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// describeBreak says why a stream ended that is asked for anew.
func describeBreak(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Error()
	}
	return problem.UnreachableText(err)
}
