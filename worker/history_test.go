package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// Whatever is asked for, and however the provider and the workers fail on the
// way: in the end no machine is left, no node had two, and every machine's cost
// is charged once, to the micro-dollar.
func TestTheLedgerIsTheBill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := usualSite()
			s.spare = seed%2 == 1
			h := history{world: buildWorld(t, s), rand: rand.New(rand.NewPCG(seed, 5))}
			h.startWorker(parts{})
			for range 40 {
				h.takeStep()
				h.driveFor(time.Duration(h.rand.IntN(8)) * 90 * time.Second)
			}
			h.closeAndCheck()
			require.NotEmpty(t, h.readCosts().Lines, "nothing was ever made")
		})
	}
}

// history is a world to which things happen by chance.
type history struct {
	*world
	rand *rand.Rand
}

func (h history) takeStep() {
	h.t.Helper()
	acts := []func() error{h.allocateGPUs, h.allocateGPUs, h.reserveGPUs, h.reserveGPUs, h.claimReady, h.claimReady,
		h.giveBack, h.giveBack, h.cancelBooked, h.injectFault,
		h.injectFault, h.killMachine, h.restartWorker, h.quarantineReady, h.resumeQuarantined, h.claimEarly}
	var refused *ledger.RefusedError
	var late *ledger.StateError
	if err := acts[h.rand.IntN(len(acts))](); err != nil && !errors.As(err, &refused) && !errors.As(err, &late) {
		require.NoError(h.t, err)
	}
}

func (h history) drawMinutes(least, most int) time.Duration {
	return time.Duration(least+h.rand.IntN(most-least+1)) * time.Minute
}

func (h history) allocateGPUs() error {
	_, err := h.ledger.Allocate(h.t.Context(), h.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 1 + h.rand.IntN(8), Lease: h.drawMinutes(5, 60)})
	return err
}

func (h history) reserveGPUs() error {
	_, err := h.ledger.Reserve(h.t.Context(), h.actor, ledger.ReserveRequest{
		Pool: "a100", GPUs: 1 + h.rand.IntN(16), Class: reservation.Guaranteed,
		Window: windowFrom(h.clock.Now().Add(h.drawMinutes(0, 30)), h.drawMinutes(5, 60)),
	})
	return err
}

func (h history) claimReady() error {
	for _, r := range h.liveReservations() {
		if r.State() == reservation.Ready {
			_, err := h.ledger.Claim(h.t.Context(), h.actor, r.ID, h.drawMinutes(5, 30), "")
			return err
		}
	}
	return nil
}

func (h history) giveBack() error {
	if held := h.liveAllocations(); len(held) > 0 {
		_, err := h.ledger.Release(h.t.Context(), h.actor, held[h.rand.IntN(len(held))].ID)
		return err
	}
	return nil
}

func (h history) cancelBooked() error {
	for _, r := range h.liveReservations() {
		if r.State() == reservation.Booked {
			_, err := h.ledger.CancelReservation(h.t.Context(), h.actor, r.ID)
			return err
		}
	}
	return nil
}

// injectFault prepares one of the faults a provider is known for, for the next calls.
func (h history) injectFault() error {
	kinds := []provisioners.Kind{provisioners.KindTransient, provisioners.KindUnknown, provisioners.KindThrottled,
		provisioners.KindCapacity}
	faults := []sim.Fault{
		{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout}, {Op: sim.OpDelete, Effect: sim.ExecuteAndTimeout},
		{Op: sim.OpDelete, Effect: sim.Ignore}, {Op: sim.OpList, Effect: sim.Truncate},
		{Op: sim.OpGet, Effect: sim.Deny},
		{Op: sim.OpCreate, Effect: sim.BootNever}, {Op: sim.OpCreate, Effect: sim.BootDies},
		{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: kinds[h.rand.IntN(4)]},
		{Op: sim.OpDelete, Effect: sim.FailBefore, Kind: kinds[h.rand.IntN(3)]},
		{Op: sim.OpGet, Effect: sim.FailBefore, Kind: kinds[h.rand.IntN(3)]},
		{Op: sim.OpList, Effect: sim.FailBefore, Kind: kinds[h.rand.IntN(3)]},
	}
	f := faults[h.rand.IntN(len(faults))]
	f.Times = 1 + h.rand.IntN(4)
	return h.allClouds()[h.rand.IntN(len(h.allClouds()))].Inject(f)
}

// killMachine takes a machine away without a word.
func (h history) killMachine() error {
	for _, line := range h.cloud.Bill(h.clock.Now()).Lines {
		if line.To.Equal(h.clock.Now()) {
			return h.cloud.Kill(line.ID)
		}
	}
	return nil
}

// quarantineReady has an operator keep a node that is ready.
func (h history) quarantineReady() error {
	return h.applyToNode(node.Ready, func(ctx context.Context, actor ledger.Actor, id string) (node.Node, error) {
		return h.ledger.QuarantineNode(ctx, actor, id, "")
	})
}

// resumeQuarantined has an operator take a node back.
func (h history) resumeQuarantined() error {
	return h.applyToNode(node.Quarantined, h.ledger.ResumeNode)
}

func (h history) applyToNode(in node.State, verb func(context.Context, ledger.Actor, string) (node.Node, error)) error {
	for _, n := range h.readNodes() {
		if n.State() == in {
			_, err := verb(h.t.Context(), h.actor, n.ID)
			return err
		}
	}
	return nil
}

// claimEarly claims what is booked, however far off its window is.
func (h history) claimEarly() error {
	for _, r := range h.liveReservations() {
		if r.Placed() {
			_, err := h.ledger.Claim(h.t.Context(), h.actor, r.ID, 0, "")
			return err
		}
	}
	return nil
}

func (h history) restartWorker() error {
	h.startWorker(parts{})
	return nil
}
