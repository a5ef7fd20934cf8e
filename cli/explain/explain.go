// Package explain explains why something waits, what blocks it, and what
// happens next.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Route is the route that explains things of an id's kind.
func Route(api *client.Client, id string) func(context.Context, string) (contract.Explanation, error) {
	switch {
	case strings.HasPrefix(id, "rsv_"):
		return api.ExplainReservation
	case strings.HasPrefix(id, "sch_"):
		return api.ExplainSchedule
	case strings.HasPrefix(id, "nod_"):
		return api.ExplainNode
	case strings.HasPrefix(id, "job_"):
		return api.ExplainJob
	case strings.HasPrefix(id, "pol_"):
		return api.ExplainPool
	default:
		return api.ExplainAllocation
	}
}

// NewCommand is the command that tells why something is as it is.
func NewCommand(a *app.App, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:         "explain ALLOCATION|RESERVATION|JOB|SCHEDULE|NODE|POOL|PLAN",
		Short:       "See why something waits, what blocks it, and what happens next",
		Args:        flags.ExactArgs("ALLOCATION, RESERVATION, JOB, SCHEDULE, NODE, POOL or PLAN"),
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := resolveExplainable(a, cmd, args[0])
			if err != nil {
				return err
			}
			if strings.HasPrefix(id, "pln_") {
				got, err := api.Plan(cmd.Context(), id)
				if err != nil {
					return err
				}
				return plans.Show(a, cmd, got)
			}
			got, err := Route(api, id)(cmd.Context(), id)
			if err != nil {
				return err
			}
			return Show(a, cmd, got)
		},
	}
	for _, verb := range verbs {
		c.AddCommand(explainInstead(a, verb))
	}
	return c
}

// resolveExplainable is BookingID that also takes a schedule or a pool, of which no booking
// has the name.
func resolveExplainable(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	if strings.HasPrefix(ref, "sch_") || strings.HasPrefix(ref, "pol_") {
		api, err := a.NewClient()
		return api, ref, err
	}
	api, id, err := names.BookingID(a, cmd, ref)
	if err == nil && strings.HasPrefix(id, names.ArrayPrefix) {
		id, err = names.OnlyJob(cmd.Context(), api, ref, id)
		return api, id, err
	}
	if unknown, ok := errors.AsType[*exit.Error](err); ok && api != nil && unknown.Code == exit.NotFound {
		if s, err := api.Schedule(cmd.Context(), ref); err == nil {
			return api, s.ID, nil
		}
		if p, err := api.Pool(cmd.Context(), ref); err == nil {
			return api, p.ID, nil
		}
		unknown.Message = fmt.Sprintf("there is no allocation, reservation, job, schedule or pool %q, or your key may "+
			"not see it", ref)
		unknown.Next = append(unknown.Next, "forewarm schedules list", "forewarm pools list")
	}
	return api, id, err
}

// explainInstead is a command that asks what would become of its request.
func explainInstead(a *app.App, c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.Short, c.Annotations = "What if: "+strings.ToLower(c.Short[:1])+c.Short[1:], nil
	c.Long = cmp.Or(c.Long, c.Short+".") + "\n\nThis changes and stores nothing. It shows whether the request " +
		"would be accepted, how long it would wait,\nwhat blocks it, and what would be accepted instead."
	c.RunE = func(cmd *cobra.Command, args []string) error {
		a.Explaining = true
		return run(cmd, args)
	}
	return c
}

// Ask explains a request instead of making it.
func Ask(a *app.App, cmd *cobra.Command, api *client.Client, in contract.ExplainRequest) error {
	got, err := api.Explain(a.WithIdempotencyKey(cmd.Context()), in)
	if err != nil {
		return err
	}
	return Show(a, cmd, got)
}
