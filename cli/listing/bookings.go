package listing

import (
	"context"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
)

// NewBookingsCommand is the list command of allocations or reservations, which people also
// look for by name, by whose they are and by time.
func NewBookingsCommand[T any](a *app.App, noun string, v output.View[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error]) *cobra.Command {
	var f client.Filter
	var since, until, zone string
	some := false
	c :=
		NewPooledCommand(a, noun, v,
			func(api *client.Client, ctx context.Context, narrowed client.Filter) iter.Seq2[T, error] {
				narrowed.Name, narrowed.User, narrowed.Since, narrowed.Until, narrowed.Schedule = f.Name, f.User,
					f.Since,
					f.Until, f.Schedule
				return noting(read(api, ctx, narrowed), &some)
			})
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := a.Zone(cmd, zone)
		if err != nil {
			return err
		}
		if f.Since, err = when.ParsePast(cmd, "since", since, a.Clock.Now(), in); err != nil {
			return err
		}
		if f.Until, err = when.ParsePast(cmd, "until", until, a.Clock.Now(), in); err != nil {
			return err
		}
		if f.User, err = names.User(a, cmd, f.User); err != nil {
			return err
		}
		if err := run(cmd, args); err != nil || some {
			return err
		}
		sayEnded(a, cmd, noun)
		return nil
	}
	c.Flags().StringVar(&f.Name, "name", "", "only those with this name")
	if noun == "reservations" {
		c.Flags().StringVar(&f.Schedule, "schedule", "", "only the dates of this schedule: id or name")
	}
	c.Flags().StringVar(&f.User, "user", "",
		"only those booked by this person's keys and schedules: id, e-mail address or me")
	c.Flags().StringVar(&since, "since", "",
		"only those that had not ended before: a time, or how long ago, such as 7d; includes those that have ended since")
	c.Flags().StringVar(&until, "until", "", "only those that began before: a time, or how long ago; includes "+
		"those that have ended")
	c.Flags().StringVar(&zone, "tz", "", "time zone of --since and --until (default the machine's)")
	return c
}

// noting notes whether there is anything.
func noting[T any](all iter.Seq2[T, error], some *bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for x, err := range all {
			*some = true
			if !yield(x, err) {
				return
			}
		}
	}
}

// sayEnded tells somebody who was shown nothing how those are listed that have ended, unless they were.
func sayEnded(a *app.App, cmd *cobra.Command, noun string) {
	isTable := a.Flags.Output == output.Table || a.Flags.Output == output.Wide
	for _, name := range []string{"all", "state", "since", "until"} {
		isTable = isTable && !cmd.Flags().Changed(name)
	}
	if isTable {
		a.Say(cmd, "%s that have ended are listed with --all.", strings.ToUpper(noun[:1])+noun[1:])
	}
}
