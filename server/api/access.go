package api

import (
	"context"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/telemetry"
)

// addAccess puts into an answer how whoever asked gets to an allocation's GPUs, if that
// one may know. It is for answers that are read and kept by nobody else: what is stored
// for a repeated request, journalled or listed has none.
func (a *API) addAccess(ctx context.Context, r ledger.Reader, of allocation.Allocation,
	out *contract.Allocation) error {
	found, err := ledger.AccessTo(r, auth.From(ctx), of)
	if found == nil {
		return err
	}
	out.Access = encodeAccess(of, *found)
	if found.DevicesOnly {
		return nil
	}
	for i := range out.Access.Nodes {
		n := &out.Access.Nodes[i]
		said, state := a.Telemetry.Of(n.NodeID)
		if state != telemetry.None {
			n.Daemon = string(state)
		}
		if state == telemetry.Online {
			n.Isolation = said.Look.Isolation
		}
	}
	return nil
}

// readAccess is addAccess to the answer of a new allocation.
func readAccess(ctx context.Context, a *API, out *contract.Allocation) error {
	a.refreshTelemetry(ctx)
	return a.readSnapshot(ctx, func(r ledger.Reader) error {
		got, err := r.Allocation(auth.From(ctx).Scope(), out.ID)
		if err != nil {
			return err
		}
		return a.addAccess(ctx, r, got, out)
	})
}

func encodeAccess(a allocation.Allocation, found ledger.Access) *contract.Access {
	out := &contract.Access{Policy: encodeAccessPolicy(found.DevicesOnly), Nodes: []contract.NodeAccess{}}
	master, gpus := "", 0
	for _, n := range found.Nodes {
		gpus += len(n.GPUs())
	}
	for rank, n := range found.Nodes {
		at := addressOf(n)
		if rank == 0 {
			master = at.Host
		}
		seat := access.Seat{Allocation: a.ID, Kind: at.Kind, Rank: rank, Nodes: len(found.Nodes), GPUs: gpus,
			Master: master, Simulated: n.Simulated}
		for _, d := range n.GPUs() {
			seat.UUIDs, seat.Indices = append(seat.UUIDs, d.UUID), append(seat.Indices, d.Index)
		}
		shares := encodeShares(n, found.SharesPerGPU)
		if shares != nil {
			seat.Shares, seat.SharesPerGPU, seat.ShareMemory = shares.Held, shares.PerGPU, shares.MemoryMiB
		}
		shown := contract.NodeAccess{NodeID: n.NodeID, Rank: rank, Kind: string(at.Kind), Address: at.Host, Port: at.Port,
			User: at.User, Way: at.String(), Command: at.Command(), Shell: access.Quote(at.Shell()),
			GPUIndices: seat.Indices, GPUUUIDs: seat.UUIDs, Shares: shares, Environment: seat.Environment(),
			Simulated: n.Simulated, Barred: n.Barred}
		out.Nodes = append(out.Nodes, shown)
	}
	return out
}

// encodeShares is nil where holders have their GPUs alone.
func encodeShares(n ledger.NodeAccess, perGPU int) *contract.GPUShares {
	if perGPU < 2 || len(n.Devices) == 0 {
		return nil
	}
	return &contract.GPUShares{Held: len(n.Devices), PerGPU: perGPU, MemoryMiB: n.Devices[0].MemoryMiB}
}

// addressOf reads a node's address. One that cannot be read leads nowhere: operators
// see it as it is. Devices that are simulated on a machine that is there have its way
// in, and other simulated nodes are not there, whatever their address says.
func addressOf(n ledger.NodeAccess) access.Address {
	at, err := access.Parse(n.Address)
	switch {
	case err != nil || n.Address == "":
		return access.Address{}
	case n.Simulated && at.Kind != access.Local:
		return access.Address{Kind: access.Simulated, Host: at.Host}
	}
	return at
}

func encodeAccessPolicy(devicesOnly bool) string {
	if devicesOnly {
		return contract.AccessDevices
	}
	return contract.AccessShell
}
