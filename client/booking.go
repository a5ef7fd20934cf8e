package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// Options of requests that book something.
type Options struct {
	// DryRun answers what would happen and changes nothing.
	DryRun bool
	// Wait lets the server hold the answer until the GPUs are there, for at most
	// 55 s.
	Wait time.Duration
}

func (o Options) query() url.Values {
	if !o.DryRun {
		return nil
	}
	return url.Values{"dry_run": {"true"}}
}

func (o Options) header() http.Header {
	if o.Wait <= 0 {
		return nil
	}
	return http.Header{"Prefer": {fmt.Sprintf("wait=%d", int(o.Wait/time.Second))}}
}

// Allocate asks for GPUs now. The allocation is active, or pending when its
// nodes are not warm.
func (c *Client) Allocate(ctx context.Context, in contract.AllocationCreate, o Options) (contract.Allocation, error) {
	return callFor[contract.Allocation](ctx, c, call{method: http.MethodPost, path: []string{"allocations"}, body: in,
		query: o.query(), header: o.header()})
}

// Allocation reads an allocation.
func (c *Client) Allocation(ctx context.Context, id string) (contract.Allocation, error) {
	return callFor[contract.Allocation](ctx, c, call{method: http.MethodGet, path: []string{"allocations", id}})
}

// Allocations lists allocations.
func (c *Client) Allocations(ctx context.Context, f Filter) iter.Seq2[contract.Allocation, error] {
	return listItems[contract.Allocation](ctx, c, f, "allocations")
}

// Release gives the GPUs back; a pending allocation is cancelled.
func (c *Client) Release(ctx context.Context, id string) (contract.Allocation, error) {
	return callFor[contract.Allocation](ctx, c,
		call{method: http.MethodPost, path: []string{"allocations", id, "release"}})
}

// Extend prolongs a lease by whole seconds. Of the options, DryRun counts.
func (c *Client) Extend(ctx context.Context, id string, by time.Duration, o Options) (contract.Allocation, error) {
	return callFor[contract.Allocation](ctx, c,
		call{method: http.MethodPost, path: []string{"allocations", id, "extend"},
			query: o.query(),
			body:  contract.Extend{BySeconds: int64(by / time.Second)}})
}

// Reserve asks for a promise.
func (c *Client) Reserve(ctx context.Context, in contract.ReservationCreate, o Options) (contract.Reservation, error) {
	return callFor[contract.Reservation](ctx, c, call{method: http.MethodPost, path: []string{"reservations"}, body: in,
		query: o.query()})
}

// Reservation reads a reservation.
func (c *Client) Reservation(ctx context.Context, id string) (contract.Reservation, error) {
	return callFor[contract.Reservation](ctx, c, call{method: http.MethodGet, path: []string{"reservations", id}})
}

// Reservations lists reservations.
func (c *Client) Reservations(ctx context.Context, f Filter) iter.Seq2[contract.Reservation, error] {
	return listItems[contract.Reservation](ctx, c, f, "reservations")
}

// CancelReservation ends a promise.
func (c *Client) CancelReservation(ctx context.Context, id string) (contract.Reservation, error) {
	return callFor[contract.Reservation](ctx, c, call{method: http.MethodDelete, path: []string{"reservations", id}})
}

// Claim turns a reservation into an allocation.
func (c *Client) Claim(ctx context.Context, id string, in contract.Claim, o Options) (contract.Allocation, error) {
	return callFor[contract.Allocation](ctx, c,
		call{method: http.MethodPost, path: []string{"reservations", id, "claim"},
			body:  in,
			query: o.query(), header: o.header()})
}

// SetDemand replaces the agent's whole plan for a pool.
func (c *Client) SetDemand(ctx context.Context, in contract.AgentPlan) (contract.PlanOutcome, error) {
	return callFor[contract.PlanOutcome](ctx, c,
		call{method: http.MethodPut, path: []string{"agent", "plan"}, body: in})
}
