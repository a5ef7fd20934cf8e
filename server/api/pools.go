package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func poolEndpoints(a *API) []endpoint {
	return []endpoint{
		serveOnce(a, createPool, (*create[contract.PoolCreate]).body,
			func(p contract.Pool) (string, int) { return "/v1/pools/" + p.ID, p.Version }),
		serve(a, operation.Operation{ID: "listPools", Method: http.MethodGet, Path: "/pools", Tag: "capacity",
			Policy: auth.AnyKey, Summary: "List pools"}, listPools),
		serve(a, operation.Operation{ID: "getPool", Method: http.MethodGet, Path: "/pools/{id}", Tag: "capacity",
			Policy: auth.AnyKey, Summary: "Read a pool by id or name"}, getPool),
		serveChange(a, patchPool, func(in *patchPoolInput) (contract.PlannedPool, error) {
			version, err := in.parseIfMatch()
			return contract.PlannedPool{PoolID: in.ID, Version: version, PoolPatch: in.Body}, err
		}, func(p contract.Pool) int { return p.Version }),
		serve(a, operation.Operation{ID: "deletePool", Method: http.MethodDelete, Path: "/pools/{id}", Tag: "capacity",
			Status: http.StatusNoContent, Policy: auth.Operator,
			Summary: "Delete an empty pool; its history stays"}, deletePool),
		serve(a, operation.Operation{ID: "getShares", Method: http.MethodGet, Path: "/pools/{id}/shares",
			Tag: "capacity", Policy: auth.Viewer, Summary: "Fair shares of a pool"}, getShares),
		serve(a, operation.Operation{ID: "getCycle", Method: http.MethodGet, Path: "/pools/{id}/cycle", Tag: "capacity",
			Policy:  auth.Operator,
			Summary: "What the scheduler of jobs would decide in a pool now, and on what"}, getCycle),
	}
}

var createPool = operation.Change[contract.PoolCreate, ledger.Pool, contract.Pool]{
	Operation: operation.Operation{ID: "createPool", Method: http.MethodPost, Path: "/pools", Tag: "capacity",
		Status: http.StatusCreated, Policy: auth.Operator, Summary: "Define a pool"},
	Check: func(_ context.Context, _ operation.Viewer, b *contract.PoolCreate) error {
		if b.BootP95Seconds < b.BootP50Seconds {
			return problem.Invalid("boot_p95_seconds", "must not be less than boot_p50_seconds", "")
		}
		return nil
	},
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b contract.PoolCreate) (ledger.Pool, error) {
		prior := learned.BootTimes{Prior50: fractionalSeconds(b.BootP50Seconds),
			Prior95: fractionalSeconds(b.BootP95Seconds)}
		return l.CreatePool(ctx, actor, decodePool(b), prior)
	},
	Encode: encodePoolSeen,
}

// decodePool is the definition of a pool that a body asks for.
func decodePool(b contract.PoolCreate) capacity.Pool {
	def := capacity.Pool{
		Name: b.Name, Provisioner: b.Provisioner, Region: b.Region, Type: b.InstanceType, Model: b.Model,
		PerNode: b.GPUsPerNode, MemoryMiB: b.GPUMemoryMiB, Price: parseMoney(b.PricePerNodeHour),
		MinBilling: seconds(b.MinBillingSeconds), Alternates: decodeAlternates(b.Alternates),
		MinNodes: b.MinNodes, MaxNodes: b.MaxNodes, Simulated: b.Simulated,
		Timers: capacity.Timers{WarmHold: seconds(b.WarmHoldSeconds), MaxLease: seconds(b.MaxLeaseSeconds),
			Cleaning: seconds(b.CleaningSeconds),
			IdleWarn: seconds(b.IdleWarnAfter), IdleReclaim: seconds(b.IdleReclaimAfter)},
		NodeCPUs: b.NodeCPUs, NodeMemoryMiB: b.NodeMemoryMiB, OnlineShare: b.OnlineShare, BorrowIdle: b.BorrowIdle,
		MaxCreates: b.MaxCreates, CreateWindow: seconds(b.CreateWindow),
		Observed: b.Use == useObserved, Holders: decodeHolders(b.Holders, b.DefaultHolder),
		DevicesOnly: b.Access == contract.AccessDevices, Isolation: capacity.Isolation(b.Isolation),
		Labels: b.Labels, Taints: b.Taints, SharesPerGPU: b.SharesPerGPU, MinDriver: capacity.Driver(b.MinDriver),
	}
	setSeconds(&def.Timers.IdleRelease, b.IdleReleaseSeconds)
	return def
}

// fractionalSeconds turns seconds into a duration to the microsecond.
func fractionalSeconds(s float64) time.Duration { return time.Duration(s*1e6) * time.Microsecond }

func listPools(ctx context.Context, a *API, in *struct{ Page }) (out *ListOut[contract.Pool], err error) {
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		if out, err = readPage(in.Page, "pol", r.Pools, func(p ledger.Pool) string { return p.ID },
			encodePoolAt(r.Now())); err != nil {
			return err
		}
		troubles, err := a.Ledger.Troubles(r)
		if err != nil {
			return err
		}
		for i := range out.Body.Items {
			if err := showPool(a, auth.From(ctx), r, &out.Body.Items[i], troubles); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// showPool makes of a pool what the actor may see of it, with its counts. Where its
// machines come from, and at what price, is only the operators'.
func showPool(a *API, actor ledger.Actor, r ledger.Reader, p *contract.Pool, troubles ledger.Troubles) error {
	state, err := r.LiveState(p.ID)
	if err != nil {
		return fmt.Errorf("reading pool: %w", err)
	}
	now := r.Now()
	seen := state.Snapshot()
	p.CappedUntil, p.LeadSeconds = seen.Capped(now).UTC(), a.Ledger.Lead(state.Pool, now).Seconds()
	if since, gone, err := a.Ledger.Waits(r).WorkersGone(); err != nil {
		return err
	} else if gone {
		p.NoWorkerSince = cmp.Or(since, state.Pool.CreatedAt).UTC()
	}
	counts := encodeGPUCounts(ledger.CountDevices(state.Devices(now)))
	p.GPUCounts, p.Failing = &counts, encodeTrouble(actor, troubles.In(state))
	if p.Room, err = readRoom(r, state.Pool); err != nil {
		return fmt.Errorf("reading pool: %w", err)
	}
	if actor.Role != ledger.Operator {
		p.Alternates, p.Sources = nil, []contract.SourceState{}
		p.Holders, p.DefaultHolder = nil, ""
	}
	return nil
}

// readRoom is what the last look at an observed pool's cluster found free; nil where none
// did lately.
func readRoom(r ledger.Reader, p ledger.Pool) (*contract.PoolRoom, error) {
	if !p.Observed {
		return nil, nil
	}
	seen, err := r.Watched(p.Provisioner)
	if err != nil {
		return nil, err
	}
	room, fresh := seen.RoomOf(p.ID, r.Now())
	if !fresh {
		return nil, nil
	}
	out := &contract.PoolRoom{SeenAt: room.At.UTC(), IdleNodes: room.Idle, Shared: []contract.SharedNodes{}}
	for _, n := range room.Shared {
		out.Shared = append(out.Shared, contract.SharedNodes{FreeGPUs: n.Free, Nodes: n.Nodes})
	}
	return out, nil
}

// encodeTrouble is a trouble as the actor may see it: what providers say is operators'.
func encodeTrouble(actor ledger.Actor, t *ledger.Trouble) *contract.Failure {
	if t == nil {
		return nil
	}
	out := &contract.Failure{Count: t.Count, LastAt: t.At.UTC(), Message: ledger.ProviderRefuses}
	if actor.Role == ledger.Operator {
		out.Message = t.Message
	}
	return out
}

func getPool(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Pool], error) {
	out := &One[contract.Pool]{}
	err := a.readSnapshot(ctx, func(r ledger.Reader) error {
		p, err := ledger.LivePool(r, in.ID)
		if err != nil {
			return err
		}
		out.ETag, out.Body = formatETag(p.DefinitionVersion), encodePool(p, r.Now())
		troubles, err := a.Ledger.Troubles(r)
		if err != nil {
			return err
		}
		return showPool(a, auth.From(ctx), r, &out.Body, troubles)
	})
	return out, err
}

type patchPoolInput struct {
	ByID
	Match
	Body contract.PoolPatch
}

var patchPool = operation.Change[contract.PlannedPool, ledger.Pool, contract.Pool]{
	Operation: operation.Operation{ID: "patchPool", Method: http.MethodPatch, Path: "/pools/{id}", Tag: "capacity",
		Policy: auth.Operator, Summary: "Change a pool"},
	Plan: contract.PlanPool,
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor, b contract.PlannedPool) (ledger.Pool, error) {
		update := l.UpdatePool
		if b.Force {
			update = l.ForcePool
		}
		return update(ctx, actor, b.PoolID, b.Version, func(p *capacity.Pool) { applyPatch(p, b.PoolPatch) })
	},
	Encode: encodePoolSeen,
}

func deletePool(ctx context.Context, a *API, in *struct{ ByID }) (*struct{}, error) {
	return nil, a.Ledger.DeletePool(ctx, auth.From(ctx), in.ID)
}

func applyPatch(p *capacity.Pool, b contract.PoolPatch) {
	if b.PricePerNodeHour != nil {
		p.Price = parseMoney(*b.PricePerNodeHour)
	}
	if b.Alternates != nil {
		p.Alternates = decodeAlternates(*b.Alternates)
	}
	if b.Holders != nil {
		p.Holders = decodeHolders(*b.Holders, p.Holders.Default)
	}
	setValue(&p.Holders.Default, b.DefaultHolder)
	setValue(&p.MinNodes, b.MinNodes)
	setValue(&p.MaxNodes, b.MaxNodes)
	setValue(&p.Paused, b.Paused)
	setSeconds(&p.Timers.WarmHold, b.WarmHoldSeconds)
	setSeconds(&p.Timers.IdleRelease, b.IdleReleaseSeconds)
	setSeconds(&p.Timers.MaxLease, b.MaxLeaseSeconds)
	setSeconds(&p.Timers.Cleaning, b.CleaningSeconds)
	setSeconds(&p.Timers.IdleWarn, b.IdleWarnAfter)
	setSeconds(&p.Timers.IdleReclaim, b.IdleReclaimAfter)
	setValue(&p.MaxCreates, b.MaxCreates)
	setSeconds(&p.CreateWindow, b.CreateWindow)
	setValue(&p.NodeCPUs, b.NodeCPUs)
	setValue(&p.NodeMemoryMiB, b.NodeMemoryMiB)
	setValue(&p.OnlineShare, b.OnlineShare)
	setValue(&p.BorrowIdle, b.BorrowIdle)
	if b.Isolation != nil {
		p.Isolation = capacity.Isolation(*b.Isolation)
	}
	if b.MinDriver != nil {
		p.MinDriver = capacity.Driver(*b.MinDriver)
	}
	setValue(&p.Labels, b.Labels)
	setValue(&p.Taints, b.Taints)
	if b.Access != nil {
		p.DevicesOnly = *b.Access == contract.AccessDevices
	}
}

func setSeconds(to *time.Duration, from *int64) {
	if from != nil {
		*to = seconds(*from)
	}
}

func setValue[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func decodeAlternates(in []contract.PoolSource) []capacity.Alternate {
	var out []capacity.Alternate
	for _, s := range in {
		out = append(out, capacity.Alternate{
			Offering: capacity.Offering{Provisioner: s.Provisioner, Region: s.Region, Type: s.InstanceType,
				Price: parseMoney(s.PricePerNodeHour), MinBilling: seconds(s.MinBillingSeconds)},
			Boot50: fractionalSeconds(s.BootP50Seconds), Boot95: fractionalSeconds(s.BootP95Seconds),
		})
	}
	return out
}

func encodeAlternates(in []capacity.Alternate) []contract.PoolSource {
	var out []contract.PoolSource
	for _, a := range in {
		out = append(out, contract.PoolSource{
			Provisioner: a.Provisioner, Region: a.Region, InstanceType: a.Type, PricePerNodeHour: formatMoney(a.Price),
			MinBillingSeconds: int64(a.MinBilling / time.Second),
			BootP50Seconds:    a.Boot50.Seconds(), BootP95Seconds: a.Boot95.Seconds(),
		})
	}
	return out
}

func encodeOfferings(p ledger.Pool, now time.Time) []contract.SourceState {
	var out []contract.SourceState
	for _, s := range p.Pool.Offerings() {
		known := p.Of(p.Pool, s)
		state := contract.SourceState{
			Provisioner: s.Provisioner, Region: s.Region, InstanceType: s.Type, PricePerNodeHour: formatMoney(s.Price),
			BootP50Seconds: known.Boot.P50().Seconds(), BootP95Seconds: known.Boot.P95().Seconds(),
			BootSamples: len(known.Boot.Seen),
		}
		if state.Stopped = known.Stopped(); state.Stopped == "" && known.BlockedUntil.After(now) {
			state.BlockedUntil = known.BlockedUntil.UTC()
		}
		out = append(out, state)
	}
	return out
}

// encodePoolAt encodes pools as they are at a time: what is blocked until then is not.
func encodePoolAt(now time.Time) func(ledger.Pool) contract.Pool {
	return func(p ledger.Pool) contract.Pool { return encodePool(p, now) }
}

// encodePoolSeen encodes a pool as it is when it is looked at.
func encodePoolSeen(v operation.Viewer, p ledger.Pool) contract.Pool { return encodePool(p, v.Now) }

func encodePool(p ledger.Pool, now time.Time) contract.Pool {
	creates, window := plan.Creates(p.Pool)
	return contract.Pool{
		MaxCreates: creates, CreateWindow: int64(window / time.Second),
		ID: p.ID, Name: p.Name, Provisioner: p.Provisioner, Region: p.Region, InstanceType: p.Type, Model: p.Model,
		GPUsPerNode: p.PerNode, GPUMemoryMiB: p.MemoryMiB, PricePerNodeHour: formatMoney(p.Price), MinNodes: p.MinNodes,
		MaxNodes:          p.MaxNodes,
		MinBillingSeconds: int64(p.MinBilling / time.Second), Alternates: encodeAlternates(p.Alternates),
		WarmHoldSeconds:    int64(p.Timers.WarmHold / time.Second),
		IdleReleaseSeconds: int64(p.Timers.IdleRelease / time.Second),
		MaxLeaseSeconds:    int64(p.Timers.MaxLease / time.Second),
		CleaningSeconds:    int64(p.Timers.Cleaning / time.Second),
		IdleWarnAfter:      int64(p.Timers.IdleWarn / time.Second),
		IdleReclaimAfter:   int64(p.Timers.IdleReclaim / time.Second),
		NodeCPUs:           p.NodeCPUs, NodeMemoryMiB: p.NodeMemoryMiB, OnlineShare: p.OnlineShare,
		BorrowIdle: p.BorrowIdle, Paused: p.Paused, Simulated: p.Simulated,
		Use: encodeUse(p.Observed), Holders: encodeHolders(p.Holders), DefaultHolder: p.Holders.Default,
		Access: encodeAccessPolicy(p.DevicesOnly), Isolation: string(cmp.Or(p.Isolation, capacity.IsolationUser)),
		Labels: p.Labels, Taints: p.Taints, SharesPerGPU: p.Shares(), MinDriver: string(p.MinDriver),
		BootP50Seconds: p.Boot.P50().Seconds(), BootP95Seconds: p.Boot.P95().Seconds(), BootSamples: len(p.Boot.Seen),
		Recovering: p.Recovery.Active(), BlockedUntil: p.AsksAgain(now).UTC(), Sources: encodeOfferings(p, now),
		CreatedAt: p.CreatedAt.UTC(), Version: p.DefinitionVersion,
	}
}

func getShares(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Shares], error) {
	pool, found, err := a.Ledger.Shares(ctx, auth.From(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	out := contract.Shares{PoolID: pool.ID, Items: make([]contract.Share, len(found))}
	for i, s := range found {
		out.Items[i] = contract.Share{OrganizationID: s.OrganizationID, Weight: s.Weight, Share: s.Share,
			IdleFactor: s.Factor,
			GPUHours:   s.Usage.Held[quota.GPUs] / 3600, IdleGPUHours: s.Usage.Idle[quota.GPUs] / 3600}
		for _, u := range s.Users {
			out.Items[i].Users = append(out.Items[i].Users, contract.UserShare{UserID: u.UserID, Share: u.Share,
				GPUHours: u.Usage.Held[quota.GPUs] / 3600})
		}
	}
	return &One[contract.Shares]{Body: out}, nil
}
