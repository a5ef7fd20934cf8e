package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/contract"
)

// capsFlags are the caps of a key or a person. All of capFlags are needed where
// there are no caps yet.
type capsFlags struct {
	gpus         int
	perDay       string
	gpuHours     string
	lead, window span
}

var (
	capFlags    = []string{"max-gpus", "max-per-day", "max-lead", "max-window"}
	allCapFlags = append([]string{"gpu-hours-per-day"}, capFlags...)
)

// bindFlags makes the flags; rest says what becomes of those left out.
func (c *capsFlags) bindFlags(f *pflag.FlagSet, rest string) {
	f.IntVar(&c.gpus, "max-gpus", 0, "cap: GPUs held and promised at once"+rest)
	f.StringVar(&c.perDay, "max-per-day", "", "cap: USD of bookings a UTC day"+rest)
	f.Var(&c.lead, "max-lead", "cap: how far ahead it may reserve"+rest)
	f.Var(&c.window, "max-window", "cap: longest booking"+rest)
	f.StringVar(&c.gpuHours, "gpu-hours-per-day", "",
		"cap: GPU-hours of bookings a UTC day, or none (default no limit)")
}

// anyGiven reports whether any cap was.
func (c *capsFlags) anyGiven(cmd *cobra.Command) bool {
	return slices.ContainsFunc(allCapFlags, cmd.Flags().Changed)
}

// readCaps is the caps there are with those that were given; nil: there are none yet.
func (c *capsFlags) readCaps(cmd *cobra.Command, now *contract.Caps) (*contract.Caps, error) {
	if now == nil {
		if err := needFlags(cmd, capFlags...); err != nil {
			return nil, err
		}
		now = &contract.Caps{}
	}
	caps, given := *now, cmd.Flags().Changed
	if given("max-gpus") {
		caps.MaxGPUs = c.gpus
	}
	if given("max-per-day") {
		caps.MaxPerDay = parseDollars(c.perDay)
	}
	if given("max-lead") {
		caps.MaxLeadSeconds = c.lead.seconds()
	}
	if given("max-window") {
		caps.MaxWindowSeconds = c.window.seconds()
	}
	if given("gpu-hours-per-day") {
		if err := setLimit(cmd, "gpu-hours-per-day", c.gpuHours, &caps.GPUHoursPerDay); err != nil {
			return nil, err
		}
	}
	return &caps, nil
}

func (a *app) newUserCapsCommand() *cobra.Command {
	var flags capsFlags
	var none bool
	c := &cobra.Command{
		Use: "caps USER", Short: "Cap what a person's keys may book, all together", Args: exactArgs("USER"),
		Long: `Cap what a person's keys may book, all together.

The caps that are left out stay as they are. Who has none yet needs --max-gpus, --max-per-day, --max-lead and --max-window.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !none && !flags.anyGiven(cmd) {
				return usageErrorf("forewarm users caps --help", "there is nothing to change: give a cap, or --none")
			}
			return a.capUser(cmd, args[0], func(now *contract.Caps) (*contract.Caps, error) {
				if none {
					return nil, nil
				}
				return flags.readCaps(cmd, now)
			})
		},
	}
	flags.bindFlags(c.Flags(), "")
	c.Flags().BoolVar(&none, "none", false, "no caps any more")
	for _, one := range allCapFlags {
		c.MarkFlagsMutuallyExclusive("none", one)
	}
	return c
}

// capUser changes the version of the person that it has just read.
func (a *app) capUser(cmd *cobra.Command, ref string, change func(*contract.Caps) (*contract.Caps, error)) error {
	api, err := a.newClient()
	if err != nil {
		return err
	}
	u, err := api.User(cmd.Context(), ref)
	if err != nil {
		return err
	}
	caps, err := change(u.Caps)
	if err != nil {
		return err
	}
	got, err := api.SetUserCaps(a.withIdempotencyKey(cmd.Context()), u.ID, u.Version, caps)
	if err != nil {
		return err
	}
	return showOne(a, cmd, userView, got)
}
