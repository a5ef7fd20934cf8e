package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var pauseView = view[contract.PrewarmPause]{
	name: func(x contract.PrewarmPause) string { return pausedWhom(x) },
	columns: []column[contract.PrewarmPause]{
		{head: "PAUSED", cell: pausedWhom},
		{head: "SINCE", cell: func(x contract.PrewarmPause) string { return formatTime(x.PausedAt) }},
		{head: "UNTIL", cell: func(x contract.PrewarmPause) string {
			if x.Until.IsZero() {
				return "it is resumed"
			}
			return formatTime(x.Until)
		}},
		{head: "REASON", cell: func(x contract.PrewarmPause) string { return orDash(x.Reason) }},
		{head: "BY", cell: func(x contract.PrewarmPause) string { return orDash(firstNonEmpty(x.PausedByName, x.PausedBy)) },
			wide: true},
	},
}

func prewarmState(x contract.Prewarm) string {
	if x.Paused {
		return "paused"
	}
	return "running"
}

// pausedFor says for whom, the caller among them, guesses are not warmed; empty:
// they are.
func pausedFor(x contract.Prewarm) string {
	switch {
	case !x.Paused:
		return ""
	case slices.ContainsFunc(x.Pauses, func(p contract.PrewarmPause) bool { return p.Installation }):
		return "pre-warming paused for everybody"
	default:
		return "pre-warming paused for your organization"
	}
}

// pauseText says who has no guesses warmed, until when, and why.
func pauseText(x contract.PrewarmPause) string {
	text := "Pre-warming is paused for " + pausedWhom(x)
	if !x.Until.IsZero() {
		text += " until " + formatTime(x.Until)
	}
	if x.Reason != "" {
		text += ": " + x.Reason
	}
	return text
}

func pausedWhom(x contract.PrewarmPause) string {
	if x.Installation {
		return "everybody"
	}
	return firstNonEmpty(x.OrganizationName, x.OrganizationID)
}

func (a *app) newPrewarmCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show whether guesses are warmed", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Prewarm(cmd.Context())
			if err != nil {
				return err
			}
			return a.showPrewarm(cmd, got)
		},
	}
	return newGroupCommand("prewarm", "Stop and resume warming on guesses", status, a.newPausePrewarmCommand(), a.newResumePrewarmCommand())
}

func (a *app) showPrewarm(cmd *cobra.Command, got contract.Prewarm) error {
	if a.flags.output != table && a.flags.output != wide {
		return showOne(a, cmd, view[contract.Prewarm]{name: prewarmState}, got)
	}
	if len(got.Pauses) == 0 {
		a.say(cmd, "Guesses are warmed: nothing is paused.")
		return nil
	}
	return showList(a, cmd, pauseView, got.Pauses)
}

func (a *app) newPausePrewarmCommand() *cobra.Command {
	var in contract.PrewarmPauseCreate
	var length span
	var until, zone string
	c := &cobra.Command{
		Use: "pause", Short: "Warm nothing on a guess; promises are kept (admins)", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if in.Until, err = a.parseEnding(cmd, length, until, zone); err != nil {
				return err
			}
			return a.changePrewarm(cmd, func(api *client.Client) (contract.Prewarm, error) {
				return api.PausePrewarm(a.withIdempotencyKey(cmd.Context()), in)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	f.BoolVar(&in.Installation, "installation", false, "pause everybody (operators)")
	f.StringVar(&in.Reason, "reason", "", "why, shown to whoever is refused")
	f.Var(&length, "for", "resume by itself after this long")
	f.StringVar(&until, "until", "", "resume by itself at this time, such as 'mon 09:00'")
	f.StringVar(&zone, "tz", "", "time zone of --until (default the machine's)")
	c.MarkFlagsMutuallyExclusive("for", "until")
	c.MarkFlagsMutuallyExclusive("org", "installation")
	return c
}

// parseEnding is when something ends that is said to last a while, or until a time;
// zero when neither is said.
func (a *app) parseEnding(cmd *cobra.Command, length span, until, zone string) (time.Time, error) {
	switch {
	case length > 0:
		return a.clock.Now().Add(length.std()).UTC(), nil
	case until == "":
		return time.Time{}, nil
	}
	in, err := a.findZone(cmd, zone)
	if err != nil {
		return time.Time{}, err
	}
	t, err := parseTime(until, a.clock.Now(), in)
	return t.UTC(), blameFlag(cmd, "until", err)
}

func (a *app) newResumePrewarmCommand() *cobra.Command {
	var in contract.PrewarmResume
	c := &cobra.Command{
		Use: "resume", Short: "Warm guesses again (admins)", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changePrewarm(cmd, func(api *client.Client) (contract.Prewarm, error) {
				return api.ResumePrewarm(a.withIdempotencyKey(cmd.Context()), in)
			})
		},
	}
	c.Flags().StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	c.Flags().BoolVar(&in.Installation, "installation", false, "resume everybody (operators)")
	c.MarkFlagsMutuallyExclusive("org", "installation")
	return c
}

func (a *app) changePrewarm(cmd *cobra.Command, change func(*client.Client) (contract.Prewarm, error)) error {
	api, err := a.newClient()
	if err != nil {
		return err
	}
	got, err := change(api)
	if err != nil {
		return err
	}
	return a.showPrewarm(cmd, got)
}
