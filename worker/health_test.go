package worker_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// ill is a provider whose machines show other devices than they should.
type ill struct {
	provisioners.Provisioner
	change func([]capacity.Device) []capacity.Device
}

func (p *ill) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	i, err := p.Provisioner.Get(ctx, id)
	if p.change != nil && len(i.Devices) > 0 {
		i.Devices = p.change(i.Devices)
	}
	return i, err
}

var illnesses = map[string]func([]capacity.Device) []capacity.Device{
	"gpu_count": func(d []capacity.Device) []capacity.Device { return d[1:] },
	"gpu_identity": func(d []capacity.Device) []capacity.Device {
		d[1].UUID = d[0].UUID
		return d
	},
	"gpu_model": func(d []capacity.Device) []capacity.Device {
		d[0].Model = "t4"
		return d
	},
	"gpu_memory": func(d []capacity.Device) []capacity.Device {
		d[7].MemoryMiB = 70_000
		return d
	},
}

// exchangeDevices is what can only be seen of a machine that was proved before: whoever
// holds a GPU holds it by its UUID.
func exchangeDevices(d []capacity.Device) []capacity.Device {
	d[3].UUID = "GPU-another"
	return d
}

// A node whose devices are not what its pool promises is taken out of use, and
// whoever held it is told.
func TestANodeThatFallsIllIsTakenOutOfUse(t *testing.T) {
	t.Parallel()
	all := maps.Clone(illnesses)
	all["gpu_changed"] = exchangeDevices
	for code, illness := range all {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, cloud, a := newObservedWorld(t)
			w.driveFor(5 * time.Minute)
			require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
			cloud.change = illness
			w.driveFor(4 * time.Minute)
			require.Equal(t, allocation.Failed, w.readAllocation(a.ID).State())
			require.Contains(t, w.eventTypes(), "node.quarantined")
			require.Contains(t, w.nodeReasons(), code)
			cloud.change = nil
			b := w.allocateNode()
			w.driveFor(5 * time.Minute)
			w.requireActive(b)
			require.Len(t, w.countMachines(), 1, "the ill machine is left")
			w.closeAndCheck()
			w.requireOver(2)
		})
	}
}

// A machine that runs without what was asked for never becomes a ready node.
func TestTheHealthGateStopsAnIllMachine(t *testing.T) {
	t.Parallel()
	for code, illness := range illnesses {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, cloud, a := newObservedWorld(t)
			cloud.change = illness
			w.driveFor(20 * time.Minute)
			require.NotContains(t, w.eventTypes(), "node.ready")
			cloud.change = nil
			w.updatePool(func(*capacity.Pool) {}) // what all of a kind have stops the buying until a person comes
			w.driveFor(10 * time.Minute)
			require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
			require.Len(t, w.cloud.LivePerNode(), 1, "ill machines are left")
			w.closeAndCheck()
		})
	}
}

// newObservedWorld is a world with a request for GPUs, and a hand on what is seen of
// its machines.
func newObservedWorld(t *testing.T) (*world, *ill, allocation.Allocation) {
	t.Helper()
	w := newWorld(t)
	cloud := &ill{Provisioner: w.cloud}
	w.startWorker(parts{cloud: cloud})
	a, err := w.ledger.Allocate(t.Context(), w.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: 2 * time.Hour})
	require.NoError(t, err)
	return w, cloud, a
}

// nodeReasons are why the nodes are as they are.
func (w *world) nodeReasons() []string {
	w.t.Helper()
	var all []string
	for _, e := range w.readEvents("node." + string(node.Quarantined)) {
		all = append(all, e.Reason)
	}
	return all
}

// readEvents are the latest of a type.
func (w *world) readEvents(kind string) []ledger.Event {
	w.t.Helper()
	return readFrom(w, func(r ledger.Reader) ([]ledger.Event, error) {
		return r.Events(ledger.Scope{All: true}, ledger.EventFilter{Type: kind}, 10)
	})
}
