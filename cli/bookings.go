package cli

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
)

// newListBookingsCommand is the list command of allocations or reservations, which people also
// look for by name, by whose they are and by time.
func newListBookingsCommand[T any](a *app, noun string, v view[T],
	read func(*client.Client, context.Context, client.Filter) iter.Seq2[T, error]) *cobra.Command {
	var f client.Filter
	var since, until, zone string
	c := newPooledListCommand(a, noun, v, func(api *client.Client, ctx context.Context, narrowed client.Filter) iter.Seq2[T, error] {
		narrowed.Name, narrowed.User, narrowed.Since, narrowed.Until, narrowed.Schedule = f.Name, f.User, f.Since,
			f.Until, f.Schedule
		return read(api, ctx, narrowed)
	})
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := a.findZone(cmd, zone)
		if err != nil {
			return err
		}
		if f.Since, err = parsePast("since", since, a.clock.Now(), in); err != nil {
			return err
		}
		if f.Until, err = parsePast("until", until, a.clock.Now(), in); err != nil {
			return err
		}
		if f.User, err = a.resolveUser(cmd, f.User); err != nil {
			return err
		}
		return run(cmd, args)
	}
	c.Flags().StringVar(&f.Name, "name", "", "only those of this name")
	if noun == "reservations" {
		c.Flags().StringVar(&f.Schedule, "schedule", "", "only the dates of this schedule: id or name")
	}
	c.Flags().StringVar(&f.User, "user", "",
		"only those that keys and schedules of this person booked: id, e-mail address or me")
	c.Flags().StringVar(&since, "since", "",
		"only those that had not ended by then, over or not: a time, or how long ago, such as 7d")
	c.Flags().StringVar(&until, "until", "", "only those that had begun before, over or not: a time, or how long ago")
	c.Flags().StringVar(&zone, "tz", "", "time zone of --since and --until (default the machine's)")
	return c
}

// resolveUser is the person that was named, which may be me.
func (a *app) resolveUser(cmd *cobra.Command, named string) (string, error) {
	if named != "me" {
		return named, nil
	}
	api, err := a.newClient()
	if err != nil {
		return "", err
	}
	who, err := api.Whoami(cmd.Context())
	if err == nil && who.UserID == "" {
		err = usageErrorf("forewarm whoami", "--user me: your key is nobody's, so that no person is known")
	}
	return who.UserID, err
}
