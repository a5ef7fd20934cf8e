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

// exchanged is what can only be seen of a machine that was proved before: whoever
// holds a GPU holds it by its UUID.
func exchanged(d []capacity.Device) []capacity.Device {
	d[3].UUID = "GPU-another"
	return d
}

// A node whose devices are not what its pool promises is taken out of use, and
// whoever held it is told.
func TestANodeThatFallsIllIsTakenOutOfUse(t *testing.T) {
	t.Parallel()
	all := maps.Clone(illnesses)
	all["gpu_changed"] = exchanged
	for code, illness := range all {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, cloud, a := observed(t)
			w.drive(5 * time.Minute)
			require.Equal(t, allocation.Active, w.allocation(a.ID).State())
			cloud.change = illness
			w.drive(4 * time.Minute)
			require.Equal(t, allocation.Failed, w.allocation(a.ID).State())
			require.Contains(t, w.history(), "node.quarantined")
			require.Contains(t, w.reasons(), code)
			cloud.change = nil
			b := w.ask()
			w.drive(5 * time.Minute)
			w.requireActive(b)
			require.Len(t, w.live(), 1, "the ill machine is left")
			w.close()
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
			w, cloud, a := observed(t)
			cloud.change = illness
			w.drive(20 * time.Minute)
			require.NotContains(t, w.history(), "node.ready")
			cloud.change = nil
			w.updatePool(func(*capacity.Pool) {}) // what all of a kind have stops the buying until a person comes
			w.drive(10 * time.Minute)
			require.Equal(t, allocation.Active, w.allocation(a.ID).State())
			require.Len(t, w.cloud.LivePerNode(), 1, "ill machines are left")
			w.close()
		})
	}
}

// observed is a world with a request for GPUs, and a hand on what is seen of
// its machines.
func observed(t *testing.T) (*world, *ill, allocation.Allocation) {
	t.Helper()
	w := newWorld(t)
	cloud := &ill{Provisioner: w.cloud}
	w.start(parts{cloud: cloud})
	a, err := w.ledger.Allocate(t.Context(), w.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 8, Lease: 2 * time.Hour})
	require.NoError(t, err)
	return w, cloud, a
}

// reasons are why the nodes are as they are.
func (w *world) reasons() []string {
	w.t.Helper()
	var all []string
	for _, e := range w.events("node." + string(node.Quarantined)) {
		all = append(all, e.Reason)
	}
	return all
}

// events are the latest of a type.
func (w *world) events(kind string) []ledger.Event {
	w.t.Helper()
	return fetch(w, func(r ledger.Reader) ([]ledger.Event, error) {
		return r.Events(ledger.Scope{All: true}, ledger.EventFilter{Type: kind}, 10)
	})
}
