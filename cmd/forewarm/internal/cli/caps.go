package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/contract"
)

// capsFlags are the caps of a key or a person. All of capFlags are needed.
type capsFlags struct {
	gpus         int
	perDay       string
	gpuHours     int64
	lead, window span
}

var capFlags = []string{"max-gpus", "max-per-day", "max-lead", "max-window"}

func (c *capsFlags) bind(f *pflag.FlagSet) {
	f.IntVar(&c.gpus, "max-gpus", 0, "cap: GPUs held and promised at once")
	f.StringVar(&c.perDay, "max-per-day", "", "cap: USD of bookings a UTC day")
	f.Var(&c.lead, "max-lead", "cap: how far ahead it may reserve")
	f.Var(&c.window, "max-window", "cap: longest booking")
	f.Int64Var(&c.gpuHours, "gpu-hours-per-day", 0, "cap: GPU-hours of bookings a UTC day (default no limit)")
}

func (c *capsFlags) read(cmd *cobra.Command) (*contract.Caps, error) {
	if err := need(cmd, capFlags...); err != nil {
		return nil, err
	}
	caps := &contract.Caps{MaxGPUs: c.gpus, MaxPerDay: dollars(c.perDay), MaxLeadSeconds: c.lead.seconds(), MaxWindowSeconds: c.window.seconds()}
	set(cmd, "gpu-hours-per-day", &caps.GPUHoursPerDay, c.gpuHours)
	return caps, nil
}

func (a *app) userCaps() *cobra.Command {
	var flags capsFlags
	var none bool
	c := &cobra.Command{
		Use: "caps USER", Short: "Cap what a person's keys may book, all together", Args: named("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var caps *contract.Caps
			if !none {
				var err error
				if caps, err = flags.read(cmd); err != nil {
					return err
				}
			}
			return a.capUser(cmd, args[0], caps)
		},
	}
	flags.bind(c.Flags())
	c.Flags().BoolVar(&none, "none", false, "no caps any more")
	return c
}

// capUser changes the version of the person that it has just read.
func (a *app) capUser(cmd *cobra.Command, ref string, caps *contract.Caps) error {
	api, err := a.client()
	if err != nil {
		return err
	}
	u, err := a.person(cmd, api, ref)
	if err != nil {
		return err
	}
	got, err := api.SetUserCaps(a.send(cmd.Context()), u.ID, u.Version, caps)
	if err != nil {
		return err
	}
	return one(a, cmd, userView, got)
}
