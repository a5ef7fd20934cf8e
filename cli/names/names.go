// Package names finds ids by name.
package names

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Lister is a method of the SDK that goes through a collection.
type Lister[T any] = func(context.Context, client.Filter) iter.Seq2[T, error]

// AllocationID accepts the name of an allocation where an id is wanted.
func AllocationID(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	api, err := a.NewClient()
	if err != nil || strings.HasPrefix(ref, "alc_") {
		return api, ref, err
	}
	id, err := resolveName(cmd.Context(), ref, allocationsByName(api))
	return api, cmp.Or(id, ref), err
}

// ReservationID accepts the name of a reservation where an id is wanted.
func ReservationID(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	api, err := a.NewClient()
	if err != nil || strings.HasPrefix(ref, "rsv_") {
		return api, ref, err
	}
	id, err := resolveName(cmd.Context(), ref, reservationsByName(api))
	return api, cmp.Or(id, ref), err
}

// BookingID accepts the name of an allocation, a reservation, a job or an array of jobs where an id is
// wanted: of what lives before what is over, and of a job before its allocation, which has
// the same name.
func BookingID(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	api, err := a.NewClient()
	if err != nil {
		return api, ref, err
	}
	for _, kind := range []string{"alc_", "rsv_", "job_", ArrayPrefix, "nod_", "pln_"} {
		if strings.HasPrefix(ref, kind) && !indexed.MatchString(ref) {
			return api, ref, nil
		}
	}
	if indexed.MatchString(ref) {
		if found, err := findJobs(cmd.Context(), api, ref); found.ID != "" || err != nil {
			return api, found.ID, err
		}
	}
	id, err := resolveName(cmd.Context(), ref, jobsByName(api, nil), allocationsByName(api), reservationsByName(api))
	if id == "" && err == nil {
		err = &exit.Error{Code: exit.NotFound,
			Message: fmt.Sprintf("there is no allocation, reservation or job %q, or your key may not see it", ref),
			Next: []string{"forewarm allocations list --all", "forewarm reservations list --all",
				"forewarm jobs list --all"}}
	}
	return api, id, err
}

// idForms is how ids begin.
var idForms = regexp.MustCompile(`^[a-z]{3}_`)

// Subject accepts a name where the id of what a decision is about is wanted.
func Subject(a *app.App, cmd *cobra.Command, api *client.Client, ref string) (string, error) {
	if ref == "" || idForms.MatchString(ref) {
		return ref, nil
	}
	id, err := resolveName(cmd.Context(), ref, allocationsByName(api), reservationsByName(api))
	if id != "" || err != nil {
		return id, err
	}
	if s, err := api.Schedule(cmd.Context(), ref); err == nil {
		return s.ID, nil
	}
	if p, err := api.Pool(cmd.Context(), ref); err == nil {
		return p.ID, nil
	}
	return "", &exit.Error{Code: exit.NotFound,
		Message: fmt.Sprintf("--subject: there is no allocation, reservation, schedule or pool %q, or your key may "+
			"not see it", ref),
		Next: []string{"forewarm allocations list --all", "forewarm reservations list --all"}}
}

// namedKind is how things of a kind are found by their name.
type namedKind struct {
	noun string
	find func(context.Context, client.Filter) (ids []string, err error)
}

func allocationsByName(api *client.Client) namedKind {
	return namedKind{"allocations", idsOf(api.Allocations, func(x contract.Allocation) string { return x.ID })}
}

func reservationsByName(api *client.Client) namedKind {
	return namedKind{"reservations", idsOf(api.Reservations, func(x contract.Reservation) string { return x.ID })}
}

// idsOf is a list as its ids. One that asks for pages of one ends with the first.
func idsOf[T any](read Lister[T], id func(T) string) func(context.Context, client.Filter) ([]string, error) {
	return func(ctx context.Context, f client.Filter) ([]string, error) {
		var found []string
		for item, err := range read(ctx, f) {
			if err != nil {
				return nil, err
			}
			if found = append(found, id(item)); f.PageSize == 1 {
				break
			}
		}
		return found, nil
	}
}

// longestName is the longest name that anything has.
const longestName = 64

// resolveName is the id of what has a name among things of some kinds: the one that
// lives, else the newest that is over. It is empty when there is none.
func resolveName(ctx context.Context, ref string, kinds ...namedKind) (string, error) {
	if ref == "" || len(ref) > longestName {
		return "", nil
	}
	for _, f := range []client.Filter{{Name: ref}, {Name: ref, All: true, PageSize: 1}} {
		for _, kind := range kinds {
			found, err := kind.find(ctx, f)
			switch {
			case err != nil:
				return "", err
			case len(found) == 1:
				return found[0], nil
			case len(found) > 1:
				return "",
					&exit.Error{Code: exit.Conflict, Message: fmt.Sprintf("%d %s are called %q: name one by its id",
						len(found), kind.noun, ref),
						Detail: found, Next: []string{"forewarm " + kind.noun + " list --name " + flags.Quote(ref)}}
			}
		}
	}
	return "", nil
}

// NounOf is the noun of the id of a booking or a job.
func NounOf(id string) string {
	switch {
	case strings.HasPrefix(id, "rsv_"):
		return "reservations"
	case strings.HasPrefix(id, "job_"), strings.HasPrefix(id, ArrayPrefix):
		return "jobs"
	}
	return "allocations"
}
