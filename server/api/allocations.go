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
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func allocationEndpoints(a *API) []endpoint {
	return []endpoint{
		serveWaiting(a, createAllocation, func(in *allocateInput) (contract.AllocationCreate, string) {
			return in.Body, in.Prefer
		}),
		serve(a, operation.Operation{ID: "listAllocations", Method: http.MethodGet, Path: "/allocations",
			Tag: "bookings", Policy: auth.Viewer, Summary: "List allocations, the newest first"}, listAllocations),
		serve(a, operation.Operation{ID: "getAllocation", Method: http.MethodGet, Path: "/allocations/{id}",
			Tag: "bookings", Policy: auth.Viewer, Summary: "Read an allocation"}, getAllocation),
		serveOnce(a, releaseAllocation("", operation.Operation{ID: "deleteAllocation", Method: http.MethodDelete,
			Path: "/allocations/{id}"}), releaseOf, nil),
		serveOnce(a, releaseAllocation(contract.PlanRelease, operation.Operation{ID: "releaseAllocation",
			Method: http.MethodPost, Path: "/allocations/{id}/release"}), releaseOf, nil),
		serveOnce(a, extendAllocation, func(in *extendInput) extension { return extension{in.ID, in.Body} }, nil),
	}
}

type allocateInput struct {
	KeyRequired
	DryRun
	Prefer string `header:"Prefer" maxLength:"64"`
	Body   contract.AllocationCreate
}

type allocationChange[B any] = operation.Change[B, allocation.Allocation, contract.Allocation]

var createAllocation = allocationChange[contract.AllocationCreate]{
	Operation: operation.Operation{ID: "createAllocation", Method: http.MethodPost, Path: "/allocations",
		Tag: "bookings", Status: http.StatusCreated, Policy: auth.Member, Queues: true,
		Waits: true, Summary: "Get GPUs now, or as soon as their nodes are ready"},
	Plan: contract.PlanAllocate,
	Lock: func(b contract.AllocationCreate) *ledger.LockHint { return poolLock(b.Pool) },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.AllocationCreate) (allocation.Allocation, error) {
		return l.Allocate(ctx, actor, decodeAllocation(b))
	},
	StatusOf: allocationStatus, Encode: forAnybody(encodeAllocation),
}

// decodeAllocation is what a body asks of the ledger.
func decodeAllocation(b contract.AllocationCreate) ledger.AllocateRequest {
	return ledger.AllocateRequest{Pool: b.Pool, Model: b.Model, Needs: decodeNeeds(b.Needs), GPUs: b.GPUs,
		Layout: decodeLayout(b.Layout),
		Lease:  seconds(b.LeaseSeconds), Name: b.Name, Workload: capacity.Workload(b.Workload),
		Waited: seconds(b.WaitedSeconds)}
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

// serveWaiting serves a change whose answer may be held until its GPUs are there.
// asked also returns the preference to wait.
func serveWaiting[I keyed, B any](a *API, c allocationChange[B],
	asked func(*I) (B, string)) endpoint {
	return forwarded(a, c, planned(a, c, serve(a, c.Operation,
		func(ctx context.Context, a *API, in *I) (*allocationOut, error) {
			b, prefer := asked(in)
			got, dry, err := changeOnce(ctx, a, c, *in, b)
			switch {
			case err != nil:
				return nil, err
			case dry: // it waits for nothing
				return &allocationOut{Status: got.Status, Body: got.Body}, nil
			}
			return awaitAllocation(ctx, a, got, prefer)
		})))
}

// awaitAllocation completes the answer of a new allocation, after having waited for its
// GPUs as long as was asked and is allowed.
func awaitAllocation(ctx context.Context, a *API, got operation.Answer[contract.Allocation],
	prefer string) (*allocationOut, error) {
	out := &allocationOut{Status: got.Status, Replayed: formatReplayed(got.Replayed), Body: got.Body}
	wait := Wait(prefer)
	if wait > 0 {
		out.Applied = fmt.Sprintf("wait=%d", wait/time.Second)
	}
	if wait > 0 && out.Body.State == string(allocation.Pending) {
		got, err := awaitActive(ctx, a, out.Body.ID, wait)
		if err != nil {
			return nil, err
		}
		out.Status, out.Body = allocationStatus(got), encodeAllocation(got)
	}
	if wait > 0 && out.Body.State == string(allocation.Active) {
		if err := readAccess(ctx, a, &out.Body); err != nil {
			return nil, err
		}
	}
	out.Location, out.ETag = "/v1/allocations/"+out.Body.ID, formatETag(out.Body.Version)
	return out, nil
}

// awaitActive returns the allocation when it is no longer pending, or as it is when
// the time is up.
func awaitActive(ctx context.Context, a *API, id string, wait time.Duration) (allocation.Allocation, error) {
	up := time.NewTimer(wait)
	defer up.Stop()
	for {
		changed := a.Feed.Changed()
		got, err := readAllocation(ctx, a, id)
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
	Name  string    `query:"name" maxLength:"64"`
	User  string    `query:"user" maxLength:"254"`
	Since time.Time `query:"since"`
	Until time.Time `query:"until"`
	All   bool      `query:"all"`
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
func bookingFilter(ctx context.Context, a *API, r ledger.Reader, in BookingFilter, state []string, by,
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
	f.MadeBy, err = findMaker(ctx, a, r, s, by, parameter)
	return s, f, err
}

// findMaker resolves the key or schedule that bookings are of, by id or name. Where
// both have the name it is the key's.
func findMaker(ctx context.Context, a *API, r ledger.Reader, s ledger.Scope, by, parameter string) (string, error) {
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

func listAllocations(ctx context.Context, a *API, in *struct {
	Page
	BookingFilter
	State  []string `query:"state" enum:"pending,active,releasing,released,failed,expired,cancelled"`
	HeldBy string   `query:"held_by" maxLength:"64" doc:"Id or name of the key that asked."`
	Used   bool     `query:"used" doc:"Tell used_until, too, which takes longer."`
},
) (out *ListOut[contract.Allocation], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, f, err := bookingFilter(ctx, a, r, in.BookingFilter, in.State, in.HeldBy, "held_by")
		if err != nil {
			return err
		}
		waits := newWaitEncoder(a, r)
		var found []allocation.Allocation
		out, err = readPage(in.Page, "alc", func(p ledger.Page) (_ []allocation.Allocation, err error) {
			found, err = r.Allocations(s, f, p)
			return found, err
		}, func(a allocation.Allocation) string { return a.ID }, waits.encodeAllocation)
		if err := errors.Join(err, waits.err); err != nil {
			return err
		}
		found = found[:len(out.Body.Items)]
		if in.Used {
			err = showUse(r, found, out.Body.Items)
		}
		return errors.Join(err, showIdle(r, found, out.Body.Items))
	})
	return out, err
}

func readAllocation(ctx context.Context, a *API, id string) (got allocation.Allocation, err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err = r.Allocation(auth.From(ctx).Scope(), id)
		return err
	})
	return got, err
}

func getAllocation(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Allocation], error) {
	out := &One[contract.Allocation]{}
	a.refreshTelemetry(ctx)
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err := r.Allocation(auth.From(ctx).Scope(), in.ID)
		if err != nil {
			return err
		}
		waits := newWaitEncoder(a, r)
		out.ETag, out.Body = formatETag(got.Version), waits.encodeAllocation(got)
		shown := []contract.Allocation{out.Body}
		if err := errors.Join(waits.err, showIdle(r, []allocation.Allocation{got}, shown)); err != nil {
			return err
		}
		out.Body = shown[0]
		return a.addAccess(ctx, r, got, &out.Body)
	})
	return out, err
}

func releaseOf(in *act) contract.PlannedRelease { return contract.PlannedRelease{AllocationID: in.ID} }

// releaseAllocation gives GPUs back. There are two routes to it, of which one has
// plans.
func releaseAllocation(plan string, op operation.Operation) allocationChange[contract.PlannedRelease] {
	op.Tag, op.Policy, op.Summary = "bookings", auth.Member, "Release the GPUs"
	return allocationChange[contract.PlannedRelease]{
		Operation: op, Plan: plan,
		Lock: func(b contract.PlannedRelease) *ledger.LockHint { return &ledger.LockHint{Allocation: b.AllocationID} },
		Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
			b contract.PlannedRelease) (allocation.Allocation, error) {
			return l.Release(ctx, actor, b.AllocationID)
		},
		Encode: forAnybody(encodeAllocation),
	}
}

type extendInput struct {
	ByID
	Idempotency
	DryRun
	Body contract.Extend
}

// extension is of which lease, and by how much.
type extension struct {
	AllocationID string
	contract.Extend
}

var extendAllocation = allocationChange[extension]{
	Operation: operation.Operation{ID: "extendAllocation", Method: http.MethodPost,
		Path: "/allocations/{id}/extend", Tag: "bookings", Policy: auth.Member, Summary: "Extend the lease"},
	Lock: func(b extension) *ledger.LockHint { return &ledger.LockHint{Allocation: b.AllocationID} },
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b extension) (allocation.Allocation, error) {
		return l.Extend(ctx, actor, b.AllocationID, seconds(b.BySeconds))
	},
	Encode: forAnybody(encodeAllocation),
}

func encodeAllocation(a allocation.Allocation) contract.Allocation {
	out := contract.Allocation{
		ID: a.ID, OrganizationID: a.OrganizationID, PoolID: a.PoolID, Name: a.Name, Workload: string(a.Workload),
		HeldBy: a.HeldBy, JobID: a.JobID, State: string(a.State()),
		Reason: a.Reason, GPUs: a.Shape.GPUs(), Nodes: a.Shape.Nodes, GPUsPerNode: a.Shape.PerNode,
		Devices: []contract.Device{}, ReservationIDs: append([]string{}, a.Reservations...),
		LeaseSeconds: int64(a.Lease / time.Second),
		RequestedAt:  a.RequestedAt.UTC(), ActiveAt: a.ActiveAt.UTC(), LeaseUntil: a.LeaseUntil.UTC(),
		EndedAt: a.EndedAt.UTC(), Version: a.Version,
		EstimatedCost: formatMoney(a.Cost),
	}
	if a.Observed() {
		out.Work = encodeWork(a)
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

func encodeWork(a allocation.Allocation) *contract.ClusterWork {
	return &contract.ClusterWork{ID: a.Work.ID, Label: a.Work.Label(), Account: a.Work.Account, User: a.Work.User,
		Namespace: a.Work.Namespace, Queue: a.Work.Queue, QueuedAt: a.Work.QueuedAt.UTC(), WaitedFor: a.Work.WaitedFor,
		WarmNodes: len(a.Slots)}
}
