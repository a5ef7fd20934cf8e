package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func gpuEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "listGPUs", Method: http.MethodGet, Path: "/gpus", Tag: "capacity",
			Policy:  auth.Viewer,
			Summary: "List the devices of live nodes by node and index: to tenants those that they hold"},
			listGPUs),
		serve(a, operation.Operation{ID: "getGPU", Method: http.MethodGet, Path: "/gpus/{uuid}", Tag: "capacity",
			Policy: auth.Viewer, Summary: "Read a device of a live node"}, getGPU),
		serve(a, operation.Operation{ID: "getGPUHistory", Method: http.MethodGet, Path: "/gpus/{uuid}/history",
			Tag: "capacity", Policy: auth.Viewer,
			Summary: "Read what a device of a live node did in the last day: to tenants since they hold it"},
			getGPUHistory),
	}
}

// GPUFilter narrows a list of devices.
type GPUFilter struct {
	Pool         string   `query:"pool" maxLength:"64" doc:"Id or name."`
	Node         string   `query:"node" maxLength:"254" doc:"Id; to operators also the provider's."`
	Organization string   `query:"organization" maxLength:"64"`
	Model        string   `query:"model" maxLength:"63"`
	State        []string `query:"state" enum:"free,held,booked,coming,unavailable"`
	Health       []string `query:"health" enum:"healthy,degraded,unhealthy,unknown"`
}

// GPUsOut answers a list of devices.
type GPUsOut struct {
	Body contract.GPUList
}

func listGPUs(ctx context.Context, a *API, in *struct {
	Page
	GPUFilter
},
) (*GPUsOut, error) {
	after, err := parseCursor("gpu", in.Cursor)
	if err != nil {
		return nil, err
	}
	actor, out := auth.From(ctx), &GPUsOut{}
	a.refreshTelemetry(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		if in.Pool, err = a.resolvePool(ctx, r, in.Pool); err != nil {
			return err
		}
		if in.Organization, err = a.resolveParameter(ctx, r, actor.Scope(), ledger.NounOrganization, "organization",
			in.Organization); err != nil {
			return err
		}
		all, err := listDevices(a, actor, r, in.Pool)
		if err != nil {
			return err
		}
		if err := checkNode(ctx, a, r, in.Node, all); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(d ledger.Device) bool { return !in.matchesDevice(actor, d, a.encodeGPU(d)) })
		out.Body.Totals = encodeGPUCounts(ledger.CountDevices(all))
		all = slices.DeleteFunc(all, func(d ledger.Device) bool { return after != "" && !sortsAfter(d, after) })
		if len(all) > in.Limit {
			all = all[:in.Limit]
			out.Body.NextCursor = formatCursor("gpu", deviceKey(all[in.Limit-1]))
		}
		out.Body.Items = []contract.GPU{}
		for _, d := range all {
			out.Body.Items = append(out.Body.Items, a.encodeGPU(d))
		}
		return nil
	})
	return out, err
}

// ByUUID names one device.
type ByUUID struct {
	ID string `path:"uuid" maxLength:"254" doc:"As the driver names it."`
}

func getGPU(ctx context.Context, a *API, in *struct{ ByUUID }) (*One[contract.GPU], error) {
	d, err := readDevice(ctx, a, in.ID)
	if err != nil {
		return nil, err
	}
	return &One[contract.GPU]{Body: a.encodeGPU(d)}, nil
}

// readDevice reads a device that whoever asks sees: any other is ledger.ErrNotFound.
func readDevice(ctx context.Context, a *API, uuid string) (found ledger.Device, err error) {
	a.refreshTelemetry(ctx)
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		all, err := listDevices(a, auth.From(ctx), r, "")
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(d ledger.Device) bool { return d.UUID == uuid })
		if at < 0 {
			return ledger.ErrNotFound
		}
		found = all[at]
		return nil
	})
	return found, err
}

// listDevices are those that an actor sees of a pool, or of all, in their order.
func listDevices(a *API, actor ledger.Actor, r ledger.Reader, poolID string) ([]ledger.Device, error) {
	ids := []string{poolID}
	if poolID == "" {
		pools, err := r.ListNames(actor.Scope(), ledger.NounPool)
		if err != nil {
			return nil, fmt.Errorf("listing pools: %w", err)
		}
		ids = nil
		for _, p := range pools {
			ids = append(ids, p.ID)
		}
	}
	var all []ledger.Device
	for _, id := range ids {
		state, err := r.LiveState(id)
		if err != nil {
			return nil, fmt.Errorf("reading pool: %w", err)
		}
		all = append(all, a.Ledger.Sight(actor.Scope()).Devices(state, r.Now())...)
	}
	slices.SortStableFunc(all, func(x, y ledger.Device) int { return cmp.Compare(x.Node.ID, y.Node.ID) })
	return all, nil
}

func (f GPUFilter) matchesDevice(actor ledger.Actor, d ledger.Device, shown contract.GPU) bool {
	return (f.Node == "" || d.Node.ID == f.Node || actor.Role == ledger.Operator && d.Node.ProviderID == f.Node) &&
		(f.Model == "" || strings.EqualFold(d.Model, f.Model)) &&
		(f.Organization == "" || d.Holder != nil && d.Holder.OrganizationID == f.Organization) &&
		(len(f.State) == 0 || slices.Contains(f.State, string(d.State))) &&
		(len(f.Health) == 0 || slices.Contains(f.Health, shown.Health))
}

// checkNode refuses a node that there is not. One without devices is there to
// operators; others know of nodes by the devices that they see.
func checkNode(ctx context.Context, a *API, r ledger.Reader, idOrName string, seen []ledger.Device) error {
	actor := auth.From(ctx)
	here := func(d ledger.Device) bool {
		return d.Node.ID == idOrName || actor.Role == ledger.Operator && d.Node.ProviderID == idOrName
	}
	if idOrName == "" || slices.ContainsFunc(seen, here) {
		return nil
	}
	if actor.Role != ledger.Operator {
		return &nothingNamed{noun: ledger.NounNode, name: idOrName, parameter: "node"}
	}
	_, err := a.resolveParameter(ctx, r, actor.Scope(), ledger.NounNode, "node", idOrName)
	return err
}

// deviceKey is the place of a device in the list.
func deviceKey(d ledger.Device) string { return d.Node.ID + "_" + strconv.Itoa(d.Index) }

// sortsAfter reports whether a device comes after the place that a key names.
func sortsAfter(d ledger.Device, key string) bool {
	cut := max(strings.LastIndexByte(key, '_'), 0)
	index, _ := strconv.Atoi(strings.TrimPrefix(key[cut:], "_"))
	return cmp.Or(cmp.Compare(d.Node.ID, key[:cut]), cmp.Compare(d.Index, index)) > 0
}

// deviceHealth is what is known of a node's devices without a daemon.
func deviceHealth(n node.Node) string {
	switch {
	case n.State() == node.Ready || n.State() == node.Draining:
		return "healthy"
	case n.State() == node.Quarantined && !n.Kept():
		return "unhealthy"
	default:
		return "unknown"
	}
}

func (a *API) encodeGPU(d ledger.Device) contract.GPU {
	out := encodeDevice(d)
	said, state := a.Telemetry.Of(d.Node.ID)
	addSeen(&out, d.Node, said, state)
	return out
}

func encodeDevice(d ledger.Device) contract.GPU {
	out := contract.GPU{UUID: d.UUID, NodeID: d.Node.ID, PoolID: d.Node.PoolID, Index: d.Index, Model: d.Model,
		MemoryMiB: d.MemoryMiB,
		State:     string(d.State), Health: deviceHealth(d.Node), NodeState: string(d.Node.State()),
		Simulated: d.Node.Simulated}
	if i, ok := capacity.ShareOf(d.UUID); ok {
		out.Share = &i
	}
	if d.Holder != nil {
		out.AllocationID, out.AllocationName, out.OrganizationID = d.Holder.ID, d.Holder.Name, d.Holder.OrganizationID
	}
	return out
}

func encodeGPUCounts(c ledger.Counts) contract.GPUCounts {
	return contract.GPUCounts{Total: c.Free + c.Held + c.Booked + c.Coming + c.Unavailable,
		Free: c.Free, Held: c.Held, Booked: c.Booked, Coming: c.Coming, Unavailable: c.Unavailable}
}
