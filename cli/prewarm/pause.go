package prewarm

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

func newPauseCommand(a *app.App) *cobra.Command {
	var in contract.PrewarmPauseCreate
	var length flags.Span
	var until, zone string
	c := &cobra.Command{
		Use: "pause", Short: "Stop warming speculative reservations; guaranteed ones are unaffected (admins)",
		Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if in.Until, err = parseEnding(a, cmd, length, until, zone); err != nil {
				return err
			}
			return changePrewarm(a, cmd, func(api *client.Client) (contract.Prewarm, error) {
				return api.PausePrewarm(a.WithIdempotencyKey(cmd.Context()), in)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&in.OrganizationID, "org", "", "id or name of the organization (default your own)")
	f.BoolVar(&in.Installation, "installation", false, "pause everybody (operators)")
	f.StringVar(&in.Reason, "reason", "", "why; shown to people whose requests are refused")
	f.Var(&length, "for", "resume by itself after this long")
	f.StringVar(&until, "until", "", "resume by itself at this time, such as 'mon 09:00'")
	f.StringVar(&zone, "tz", "", "time zone of --until (default the machine's)")
	c.MarkFlagsMutuallyExclusive("for", "until")
	c.MarkFlagsMutuallyExclusive("org", "installation")
	return c
}

// parseEnding is when something ends that is said to last a while, or until a time;
// zero when neither is said.
func parseEnding(a *app.App, cmd *cobra.Command, length flags.Span, until, zone string) (time.Time, error) {
	switch {
	case length > 0:
		return a.Clock.Now().Add(length.Duration()).UTC(), nil
	case until == "":
		return time.Time{}, nil
	}
	in, err := a.Zone(cmd, zone)
	if err != nil {
		return time.Time{}, err
	}
	t, err := when.Parse(until, a.Clock.Now(), in)
	return t.UTC(), when.BlameFlag(cmd, "until", err)
}
