package allocations

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// askAbove is the cost, in dollars, from which a person is asked before GPUs are
// taken.
const askAbove = 100

// AgreeToCost says what taking GPUs will cost before it is done, and asks a person
// at a terminal from askAbove on. preview answers a dry run. What it refuses, the
// request itself will refuse with more to say; what was sent before under the same
// idempotency key is not asked for again.
func AgreeToCost(a *app.App, cmd *cobra.Command,
	preview func(context.Context) (contract.Allocation, error)) error {
	if a.Flags.DryRun || a.Flags.IdempotencyKey != "" {
		return nil
	}
	shown, err := preview(cmd.Context())
	if err != nil {
		return nil //nolint:nilerr // the request that follows says the same, and leaves a decision in the journal
	}
	cost, err := strconv.ParseFloat(shown.EstimatedCost.Amount, 64)
	if err != nil {
		return fmt.Errorf("reading the estimated cost: %w", err)
	}
	a.Say(cmd, "Costs up to %s: %s.", format.Money(shown.EstimatedCost), leaseText(shown))
	if cost < askAbove || !a.Terminal(cmd.InOrStdin()) || !a.Terminal(cmd.ErrOrStderr()) {
		return nil
	}
	return a.Confirm(cmd, fmt.Sprintf("Take %s for up to %s", format.Count(shown.GPUs, "GPU"),
		format.Money(shown.EstimatedCost)))
}

// leaseText says for how long an allocation holds its GPUs.
func leaseText(x contract.Allocation) string {
	if x.LeaseUntil.IsZero() {
		return fmt.Sprintf("%s for %s, counted from when they are there", format.Count(x.GPUs, "GPU"),
			format.Seconds(x.LeaseSeconds))
	}
	return fmt.Sprintf("%s from %s to %s (%s)", format.Count(x.GPUs, "GPU"), format.Time(x.ActiveAt),
		format.Time(x.LeaseUntil),
		format.Duration(x.LeaseUntil.Sub(x.ActiveAt).Round(time.Second)))
}

// longLease is the lease from which allocate says what it will cost, before: its
// default is shorter.
const longLease = time.Hour
