package status

import (
	"cmp"
	"context"
	"slices"

	"github.com/forewarm/forewarm/cli/explain"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// findWaiters are what has no GPUs though it should, the longest first.
func findWaiters(held []contract.Allocation, promised []contract.Reservation) []waiter {
	var all []waiter
	for _, x := range held {
		if x.State == "pending" {
			all = append(all, waiter{ID: x.ID, Name: x.Name, Pool: cmp.Or(x.PoolName, x.PoolID), GPUs: x.GPUs,
				State: x.State, Since: x.RequestedAt, Wait: x.Wait})
		}
	}
	for _, r := range promised {
		if r.State == "waitlisted" || r.Degraded {
			all = append(all, waiter{ID: r.ID, Name: r.Name, Pool: cmp.Or(r.PoolName, r.PoolID), GPUs: r.GPUs,
				State: r.State, Since: r.CreatedAt, Wait: r.Wait})
		}
	}
	slices.SortStableFunc(all,
		func(x, y waiter) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID)) })
	return all
}

// explained is how many of those that wait are asked why: a screen has so many
// lines.
const explained = 10

// explainWaiters asks why the first of them wait.
func explainWaiters(ctx context.Context, api *client.Client, all []waiter) error {
	for i := range all[:min(len(all), explained)] {
		x, err := explain.Route(api, all[i].ID)(ctx, all[i].ID)
		if err != nil {
			return err
		}
		if all[i].Because = x.Summary; len(x.Blockers) > 0 {
			all[i].Because = x.Blockers[0].Message
		}
		if all[i].Wait == nil {
			all[i].Wait = x.Wait
		}
	}
	return nil
}
