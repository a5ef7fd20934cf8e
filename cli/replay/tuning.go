package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/core/scheduler"
)

// tuning is what another policy has instead of the recorded one's.
type tuning struct {
	order              string
	shareWeight        float64
	softening, overdue time.Duration
	promises           int
	isSet              bool // any of them was given
}

func (t *tuning) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&t.order, "order", "", "decide by this order: balanced, arrival, multifactor, ...")
	c.Flags().Float64Var(&t.shareWeight, "share-weight", 0, "decide with this scheduling.share_weight")
	c.Flags().DurationVar(&t.softening, "softening", 0, "decide with this scheduling.softening")
	c.Flags().DurationVar(&t.overdue, "overdue", 0, "decide with this scheduling.overdue")
	c.Flags().IntVar(&t.promises, "promises", 0, "decide with this scheduling.promises")
}

func (t *tuning) check(cmd *cobra.Command) error {
	for _, name := range []string{"order", "share-weight", "softening", "overdue", "promises"} {
		t.isSet = t.isSet || cmd.Flags().Changed(name)
	}
	switch {
	case cmd.Flags().Changed("order") && !slices.Contains(scheduler.Orders(), scheduler.Order(t.order)):
		return exit.UsageErrorf(next, "--order %q is none of %s", t.order, fmt.Sprint(scheduler.Orders()))
	case t.shareWeight < 0 || t.softening < 0 || t.overdue < 0 || t.promises < 0:
		return exit.UsageErrorf(next, "--share-weight, --softening, --overdue and --promises must not be negative")
	}
	return nil
}

// of is a policy with what was given in the place of its own.
func (t *tuning) of(cmd *cobra.Command, p scheduler.Policy) scheduler.Policy {
	is := cmd.Flags().Changed
	if is("order") {
		p.Order = scheduler.Order(t.order)
	}
	if is("share-weight") {
		p.ShareWeight = t.shareWeight
	}
	if is("softening") {
		p.Softening = t.softening
	}
	if is("overdue") {
		p.Overdue = t.overdue
	}
	if is("promises") {
		p.Promises = t.promises
	}
	return p
}
