// Package caps reads and shows the caps of keys and people.
package caps

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// Flags are the caps of a key or a person. All of required are needed where
// there are no caps yet.
type Flags struct {
	gpus         int
	perDay       string
	gpuHours     string
	lead, window flags.Span
}

var (
	required = []string{"max-gpus", "max-per-day", "max-lead", "max-window"}
	// All names the flags of caps.
	All = append([]string{"gpu-hours-per-day"}, required...)
)

// Bind makes the flags; rest says what becomes of those left out.
func (c *Flags) Bind(f *pflag.FlagSet, rest string) {
	f.IntVar(&c.gpus, "max-gpus", 0, "cap: GPUs held and promised at once"+rest)
	f.StringVar(&c.perDay, "max-per-day", "", "cap: USD of bookings per UTC day"+rest)
	f.Var(&c.lead, "max-lead", "cap: how far ahead it may reserve"+rest)
	f.Var(&c.window, "max-window", "cap: longest booking"+rest)
	f.StringVar(&c.gpuHours, "gpu-hours-per-day", "",
		"cap: GPU-hours of bookings per UTC day, or none (default no limit)")
}

// Given reports whether any cap was.
func (c *Flags) Given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(All, cmd.Flags().Changed)
}

// Read is the caps there are with those that were given; nil: there are none yet.
func (c *Flags) Read(cmd *cobra.Command, now *contract.Caps) (*contract.Caps, error) {
	if now == nil {
		if err := flags.Need(cmd, required...); err != nil {
			return nil, err
		}
		now = &contract.Caps{}
	}
	caps, given := *now, cmd.Flags().Changed
	if given("max-gpus") {
		caps.MaxGPUs = c.gpus
	}
	if given("max-per-day") {
		caps.MaxPerDay = flags.ParseDollars(c.perDay)
	}
	if given("max-lead") {
		caps.MaxLeadSeconds = c.lead.Seconds()
	}
	if given("max-window") {
		caps.MaxWindowSeconds = c.window.Seconds()
	}
	if given("gpu-hours-per-day") {
		if err := flags.SetLimit(cmd, "gpu-hours-per-day", c.gpuHours, &caps.GPUHoursPerDay); err != nil {
			return nil, err
		}
	}
	return &caps, nil
}

// Text shows caps in one line.
func Text(c *contract.Caps) string {
	if c == nil {
		return "-"
	}
	text := fmt.Sprintf("%s, %s a day, %s ahead, %s long", format.Count(c.MaxGPUs, "GPU"), format.Money(c.MaxPerDay),
		format.Seconds(c.MaxLeadSeconds), format.Seconds(c.MaxWindowSeconds))
	if c.GPUHoursPerDay != nil {
		text += ", " + format.Count(*c.GPUHoursPerDay, "GPU-hour") + " a day"
	}
	return text
}
