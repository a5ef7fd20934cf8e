package problem

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// clockKey holds what tells the time in the context of a command.
type clockKey struct{}

// sameMoment is how far the server's clock may be from ours for an offer that
// starts now.
const sameMoment = 10 * time.Second

// startsNow reports whether an offer can be taken at once.
func startsNow(cmd *cobra.Command, o contract.Offer) bool {
	now, ok := cmd.Context().Value(clockKey{}).(func() time.Time)
	return ok && !o.Start.After(now().Add(sameMoment))
}

// WithClock lets what is told after a command know the time.
func WithClock(ctx context.Context, now func() time.Time) context.Context {
	return context.WithValue(ctx, clockKey{}, now)
}

// offerCommands are what takes the offers, each with what was typed besides. Of
// two that are nearly the same the rounder one is left.
func offerCommands(cmd *cobra.Command, offers []contract.Offer) []string {
	var commands []string
	for i, o := range offers {
		if !oddOne(offers, i) {
			commands = append(commands, offerCommand(cmd, o))
		}
	}
	return commands
}

// oddOne reports whether another offer of the same is nearly as long, and rounder;
// of claims, whether another one may begin earlier.
func oddOne(offers []contract.Offer, i int) bool {
	o := offers[i]
	length := o.End.Sub(o.Start)
	for j, other := range offers {
		theirs := other.End.Sub(other.Start)
		same := i != j && other.PoolID == o.PoolID && other.GPUs == o.GPUs && other.ReservationID == o.ReservationID
		if !same || other.Start.Sub(o.Start).Abs() > time.Minute || (theirs-length).Abs() > max(theirs, length)/10 {
			continue
		}
		if o.ReservationID != "" {
			return other.Start.Before(o.Start)
		}
		if a, b := len(format.Duration(theirs)), len(format.Duration(length)); a < b || a == b && j < i {
			return true
		}
	}
	return false
}

// offerCommand is what takes an offer.
func offerCommand(cmd *cobra.Command, o contract.Offer) string {
	length, gpus := format.Duration(o.End.Sub(o.Start)), fmt.Sprintf("--gpus %d", o.GPUs)
	if flags.HasLayout(cmd) {
		gpus += fmt.Sprintf(" --nodes %d --gpus-per-node %d", o.Nodes, o.GPUsPerNode)
	}
	pool := " --pool " + flags.Quote(cmp.Or(o.PoolName, o.PoolID))
	switch {
	case o.ReservationID != "":
		flags := keptFlags(cmd, "name", "wait", "timeout")
		if asksWithin(cmd, o.End.Sub(o.Start)) {
			flags = keptFlags(cmd, "for") + flags
		}
		return fmt.Sprintf("forewarm reservations claim %s%s   # from %s on, up to %s", o.ReservationID, flags,
			format.Time(o.Start), format.Money(o.Cost))
	case cmd.Name() == "claim":
		if f := cmd.LocalFlags().Lookup("for"); f.Changed {
			length = f.Value.String()
		}
		return fmt.Sprintf("forewarm allocate --gpus %d%s --for %s%s   # now, in addition to the reservation, up to %s",
			o.GPUs, pool, length, keptFlags(cmd, "name", "wait", "timeout"), format.Money(o.Cost))
	case cmd.Name() == "allocate" && startsNow(cmd, o):
		return fmt.Sprintf("forewarm allocate %s%s --for %s%s", gpus, pool, length,
			keptFlags(cmd, "workload", "name", "wait", "timeout"))
	default:
		return fmt.Sprintf("forewarm reserve %s%s%s --at %s --for %s", gpus, pool,
			keptFlags(cmd, "workload", "class", "name"), format.Time(o.Start), length)
	}
}

// asksWithin reports whether --for asks for no more than a length. Without it a
// claim lasts as long as it may.
func asksWithin(cmd *cobra.Command, length time.Duration) bool {
	f := cmd.LocalFlags().Lookup("for")
	if f == nil || !f.Changed {
		return false
	}
	d, ok := f.Value.(interface{ Duration() time.Duration })
	return ok && d.Duration() <= length
}

// keptFlags repeats those of some flags that were given.
func keptFlags(cmd *cobra.Command, names ...string) string {
	text := ""
	for _, name := range names {
		if f := cmd.LocalFlags().Lookup(name); f != nil && f.Changed {
			text += " " + flags.FlagWords(f, f.Value.String())
		}
	}
	return text
}
