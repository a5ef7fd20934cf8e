package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) registerAllocations() {
	registerOperation(a, operation{http.MethodPost, "/allocations", "createAllocation", "bookings",
		"Get GPUs now, or a place to wait in", 201}, a.createAllocation)
	registerOperation(a, operation{http.MethodGet, "/allocations", "listAllocations", "bookings",
		"List allocations, the newest first", 0}, a.listAllocations)
	registerOperation(a, operation{http.MethodGet, "/allocations/{id}", "getAllocation", "bookings", "Read an allocation", 0},
		a.getAllocation)
	registerOperation(a, operation{http.MethodDelete, "/allocations/{id}", "deleteAllocation", "bookings", "Give the GPUs back",
		0}, a.releaseAllocation("DELETE /v1/allocations/{id}"))
	registerOperation(a, operation{http.MethodPost, "/allocations/{id}/release", "releaseAllocation", "bookings",
		"Give the GPUs back", 0}, a.releaseAllocation("POST /v1/allocations/{id}/release"))
	registerOperation(a, operation{http.MethodPost, "/allocations/{id}/extend", "extendAllocation", "bookings",
		"Prolong the lease", 0}, a.extendAllocation)
}

func (a *API) createAllocation(ctx context.Context, in *struct {
	KeyRequired
	DryRun bool   `query:"dry_run" doc:"Answer what would happen and change nothing."`
	Prefer string `header:"Prefer" maxLength:"64" doc:"wait=30 holds the answer for up to so many seconds, at most 55, until the GPUs are there; Preference-Applied says how many."`
	Body   contract.AllocationCreate
},
) (*allocationOut, error) {
	actor, b := auth.From(ctx), in.Body
	if in.DryRun {
		return dryRunOut(dryRun[contract.Allocation](ctx, a, actor, b, allocateOperation))
	}
	req := allocateRequest(b)
	if err := in.requireKey(); err != nil {
		return nil, err
	}
	out, err := runOnceLocking(ctx, a, ledger.Once{Route: "POST /v1/allocations", Key: in.Key, LockHint: poolLock(b.Pool)}, b,
		func(ctx context.Context, a *API) (int, contract.Allocation, error) {
			got, err := a.Ledger.Allocate(ctx, actor, req)
			return allocationStatus(got), encodeAllocation(got), err
		})
	if err != nil {
		return nil, err
	}
	return a.awaitAllocation(ctx, out, in.Prefer)
}

// allocateRequest is what a body asks of the ledger.
func allocateRequest(b contract.AllocationCreate) ledger.AllocateRequest {
	return ledger.AllocateRequest{Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs,
		Layout: decodeLayout(b.Layout),
		Lease:  seconds(b.LeaseSeconds), Name: b.Name, Workload: capacity.Workload(b.Workload)}
}

// layout is how GPUs are to lie on nodes.
func decodeNeeds(n contract.Needs) capacity.Needs {
	return capacity.Needs{Region: n.Region, MemoryMiB: n.MinGPUMemoryMiB, NodeMemoryMiB: n.MinNodeMemoryMiB}
}

func decodeLayout(l contract.Layout) capacity.Layout {
	return capacity.Layout{Nodes: l.Nodes, PerNode: l.GPUsPerNode, Even: l.Spread == "even"}
}

// allocationStatus is the status of a new allocation: 202 while it has to wait.
func allocationStatus(got allocation.Allocation) int {
	if got.State() == allocation.Pending {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// allocationOut is Created of a request that could prefer to wait.
type allocationOut struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Replayed string `header:"Idempotency-Replayed"`
	Applied  string `header:"Preference-Applied"`
	Body     contract.Allocation
}

// dryRunOut is the answer of a dry run, which waits for nothing.
func dryRunOut(out *Created[contract.Allocation], err error) (*allocationOut, error) {
	if err != nil {
		return nil, err
	}
	return &allocationOut{Status: out.Status, Body: out.Body}, nil
}

// awaitAllocation completes the answer of a new allocation, after having waited for its
// GPUs as long as was asked and is allowed.
func (a *API) awaitAllocation(ctx context.Context, made *Created[contract.Allocation], prefer string) (*allocationOut, error) {
	out, wait := &allocationOut{Status: made.Status, Replayed: made.Replayed, Body: made.Body}, Wait(prefer)
	if wait > 0 {
		out.Applied = fmt.Sprintf("wait=%d", wait/time.Second)
	}
	if wait > 0 && out.Body.State == string(allocation.Pending) {
		got, err := a.awaitActive(ctx, out.Body.ID, wait)
		if err != nil {
			return nil, err
		}
		out.Status, out.Body = allocationStatus(got), encodeAllocation(got)
	}
	out.Location, out.ETag = "/v1/allocations/"+out.Body.ID, formatETag(out.Body.Version)
	return out, nil
}

// awaitActive returns the allocation when it is no longer pending, or as it is when
// the time is up.
func (a *API) awaitActive(ctx context.Context, id string, wait time.Duration) (allocation.Allocation, error) {
	up := time.NewTimer(wait)
	defer up.Stop()
	for {
		changed := a.Feed.Changed()
		got, err := a.readAllocation(ctx, id)
		if err != nil || got.State() != allocation.Pending {
			return got, err
		}
		select {
		case <-changed:
		case <-up.C:
			return got, nil
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// GrantedWait is how long a request of a route, by method and pattern, may wait
// for its outcome besides the time that every answer may take.
func GrantedWait(route, prefer string) time.Duration {
	if route == "POST /v1/allocations" || route == "POST /v1/reservations/:id/claim" {
		return Wait(prefer)
	}
	return 0
}

// maxWait is below what proxies commonly allow an answer to take.
const maxWait = 55 * time.Second

var preferWait = regexp.MustCompile(`(?i)(?:^|[,;\s])wait=([0-9]{1,5})(?:$|[,;\s])`)

// Wait reads the wait preference of a Prefer header (RFC 7240); zero if it has
// none. A preference that cannot be read is ignored, as the RFC wants.
func Wait(prefer string) time.Duration {
	m := preferWait.FindStringSubmatch(prefer)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return min(time.Duration(n)*time.Second, maxWait)
}

// BookingFilter narrows a list of bookings.
type BookingFilter struct {
	OfOrganization
	Pool  string    `query:"pool" maxLength:"64" doc:"Id or name."`
	Name  string    `query:"name" maxLength:"64" doc:"Only those of this name. Names may be given again; the newest comes first."`
	User  string    `query:"user" maxLength:"254" doc:"Id or e-mail address of the person whose keys and schedules booked."`
	Since time.Time `query:"since" doc:"Only those that had not ended by then, whether or not they have since. Of a reservation its window counts."`
	Until time.Time `query:"until" doc:"Only those that had begun before, whether or not they are over: reservations with their window, allocations when they were asked for."`
	All   bool      `query:"all" doc:"Also those that are over. Without it, and without a state or a time, only those that are not."`
}

// toLedger is what the parameters say without names to resolve.
func (in BookingFilter) toLedger(state []string) (ledger.BookingFilter, error) {
	f := ledger.BookingFilter{State: state, Name: in.Name, Since: in.Since, Until: in.Until}
	timed := !in.Since.IsZero() || !in.Until.IsZero()
	f.Live = !in.All && len(state) == 0 && !timed
	if !in.Since.IsZero() && !in.Until.IsZero() && !in.Since.Before(in.Until) {
		return f, problem.Parameter("until", "must be after since")
	}
	return f, nil
}

// bookingFilter is what a request may see and wants to of reservations or
// allocations. by is the key or schedule that they are of.
func (a *API) bookingFilter(ctx context.Context, r ledger.Reader, in BookingFilter, state []string, by,
	parameter string) (ledger.Scope, ledger.BookingFilter, error) {
	s, err := a.requestedScope(ctx, r, in.OfOrganization)
	if err != nil {
		return s, ledger.BookingFilter{}, err
	}
	f, err := in.toLedger(state)
	if err != nil {
		return s, f, err
	}
	if f.PoolID, err = a.resolvePool(ctx, r, in.Pool); err != nil {
		return s, f, err
	}
	if f.UserID, err = a.resolveParameter(ctx, r, s, ledger.NounUser, "user", in.User); err != nil {
		return s, f, err
	}
	f.MadeBy, err = a.findMaker(ctx, r, s, by, parameter)
	return s, f, err
}

// findMaker resolves the key or schedule that bookings are of, by id or name. Where
// both have the name it is the key's.
func (a *API) findMaker(ctx context.Context, r ledger.Reader, s ledger.Scope, by, parameter string) (string, error) {
	noun := nounOf(ledger.NounKey, by)
	if by != "" && noun == ledger.NounKey {
		_, err := findByName(r, s, ledger.NounKey, by)
		if errors.Is(err, ledger.ErrNotFound) {
			if schedules, err := r.FindNamed(s, ledger.NounSchedule, by); err == nil && len(schedules) > 0 {
				noun = ledger.NounSchedule
			}
		}
	}
	return a.resolveParameter(ctx, r, s, noun, parameter, by)
}

func (a *API) listAllocations(ctx context.Context, in *struct {
	Page
	BookingFilter
	State  []string `query:"state" enum:"pending,active,releasing,released,failed,expired,cancelled"`
	HeldBy string   `query:"held_by" maxLength:"64" doc:"Id or name of the key that asked."`
},
) (out *ListOut[contract.Allocation], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := a.bookingFilter(ctx, r, in.BookingFilter, in.State, in.HeldBy, "held_by")
		if err != nil {
			return err
		}
		waits := a.newWaitEncoder(r)
		out, err = readPage(in.Page, "alc", func(p ledger.Page) ([]allocation.Allocation, error) {
			return r.Allocations(s, f, p)
		}, func(a allocation.Allocation) string { return a.ID }, waits.encodeAllocation)
		return errors.Join(err, waits.err)
	})
	return out, err
}

func (a *API) readAllocation(ctx context.Context, id string) (got allocation.Allocation, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err = r.Allocation(auth.From(ctx).Scope(), id)
		return err
	})
	return got, err
}

func (a *API) getAllocation(ctx context.Context, in *struct{ ByID }) (*One[contract.Allocation], error) {
	out := &One[contract.Allocation]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err := r.Allocation(auth.From(ctx).Scope(), in.ID)
		if err != nil {
			return err
		}
		waits := a.newWaitEncoder(r)
		out.ETag, out.Body = formatETag(got.Version), waits.encodeAllocation(got)
		return waits.err
	})
	return out, err
}

func (a *API) releaseAllocation(route string) func(context.Context, *struct {
	ByID
	Idempotency
}) (*Created[contract.Allocation], error) {
	return func(ctx context.Context, in *struct {
		ByID
		Idempotency
	},
	) (*Created[contract.Allocation], error) {
		return runOnceLocking(ctx, a, ledger.Once{Route: route, Key: in.Key, LockHint: &ledger.LockHint{Allocation: in.ID}}, in.ID,
			func(ctx context.Context, a *API) (int, contract.Allocation, error) {
				got, err := a.Ledger.Release(ctx, auth.From(ctx), in.ID)
				return http.StatusOK, encodeAllocation(got), err
			})
	}
}

func (a *API) extendAllocation(ctx context.Context, in *struct {
	ByID
	Idempotency
	DryRun bool `query:"dry_run" doc:"Answer what would happen and change nothing."`
	Body   contract.Extend
},
) (*Created[contract.Allocation], error) {
	by := seconds(in.Body.BySeconds)
	if in.DryRun {
		return dryRun[contract.Allocation](ctx, a, auth.From(ctx), in.ID,
			func(_ *API, actor ledger.Actor, id string) (ledger.Operation, error) {
				return extendOperation(actor, id, by), nil
			})
	}
	hashed := []any{in.ID, in.Body}
	return runOnceLocking(ctx, a, ledger.Once{Route: "POST /v1/allocations/{id}/extend", Key: in.Key,
		LockHint: &ledger.LockHint{Allocation: in.ID}}, hashed, func(ctx context.Context, a *API) (int, contract.Allocation, error) {
		got, err := a.Ledger.Extend(ctx, auth.From(ctx), in.ID, by)
		return http.StatusOK, encodeAllocation(got), err
	})
}

func encodeAllocation(a allocation.Allocation) contract.Allocation {
	out := contract.Allocation{
		ID: a.ID, OrganizationID: a.OrganizationID, PoolID: a.PoolID, Name: a.Name, Workload: string(a.Workload),
		HeldBy: a.HeldBy, State: string(a.State()),
		Reason: a.Reason, GPUs: a.Shape.GPUs(), Nodes: a.Shape.Nodes, GPUsPerNode: a.Shape.PerNode,
		Devices: []contract.Device{}, ReservationIDs: append([]string{}, a.Reservations...),
		LeaseSeconds: int64(a.Lease / time.Second),
		RequestedAt:  a.RequestedAt.UTC(), ActiveAt: a.ActiveAt.UTC(), LeaseUntil: a.LeaseUntil.UTC(),
		EndedAt: a.EndedAt.UTC(), Version: a.Version,
		EstimatedCost: formatMoney(a.Cost),
	}
	for _, h := range a.Devices {
		out.Devices = append(out.Devices, contract.Device{NodeID: h.NodeID, UUID: h.UUID})
	}
	if wait, ok := a.Wait(); ok {
		s, zero := wait.Seconds(), wait <= allocation.ZeroWait
		out.WaitSeconds, out.ZeroWait = &s, &zero
	}
	return out
}
