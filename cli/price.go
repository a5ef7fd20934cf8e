package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/contract"
)

// askAbove is the cost, in dollars, from which a person is asked before GPUs are
// taken.
const askAbove = 100

// agreeToCost says what taking GPUs will cost before it is done, and asks a person
// at a terminal from askAbove on. preview answers a dry run. What it refuses, the
// request itself will refuse with more to say; what was sent before under the same
// idempotency key is not asked for again.
func (a *app) agreeToCost(cmd *cobra.Command, args []string,
	preview func(context.Context) (contract.Allocation, error)) error {
	if a.flags.dryRun || a.flags.idempotencyKey != "" {
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
	a.say(cmd, "Costs up to %s: %s.", formatMoney(shown.EstimatedCost), leaseText(shown))
	if cost < askAbove || !a.terminal(cmd.InOrStdin()) || !a.terminal(cmd.ErrOrStderr()) {
		return nil
	}
	return a.confirm(cmd, typedArgs(cmd, args), fmt.Sprintf("Take %s for up to %s", formatCount(shown.GPUs, "GPU"),
		formatMoney(shown.EstimatedCost)))
}

// leaseText says for how long an allocation holds its GPUs.
func leaseText(x contract.Allocation) string {
	if x.LeaseUntil.IsZero() {
		return fmt.Sprintf("%s for %s, counted from when they are there", formatCount(x.GPUs, "GPU"), formatSeconds(x.LeaseSeconds))
	}
	return fmt.Sprintf("%s from %s to %s (%s)", formatCount(x.GPUs, "GPU"), formatTime(x.ActiveAt), formatTime(x.LeaseUntil),
		formatDuration(x.LeaseUntil.Sub(x.ActiveAt).Round(time.Second)))
}

// longLease is the lease from which allocate says what it will cost, before: its
// default is shorter.
const longLease = time.Hour

// typedArgs are the arguments and flags of the command as they were given, to be
// repeated.
func typedArgs(cmd *cobra.Command, args []string) []string {
	again := slices.Clone(args)
	cmd.LocalNonPersistentFlags().Visit(func(f *pflag.Flag) { again = append(again, "--"+f.Name, f.Value.String()) })
	return again
}
