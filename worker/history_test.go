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
			s := usual()
			s.spare = seed%2 == 1
			h := history{world: build(t, s), rand: rand.New(rand.NewPCG(seed, 5))}
			h.start(parts{})
			for range 40 {
				h.act()
				h.drive(time.Duration(h.rand.IntN(8)) * 90 * time.Second)
			}
			h.close()
			require.NotEmpty(t, h.costs().Lines, "nothing was ever made")
		})
	}
}

// history is a world to which things happen by chance.
type history struct {
	*world
	rand *rand.Rand
}

func (h history) act() {
	h.t.Helper()
	acts := []func() error{h.take, h.take, h.book, h.book, h.claim, h.claim, h.giveBack, h.giveBack, h.cancel, h.fail,
		h.fail, h.lose, h.restart, h.keep, h.resume, h.early}
	var refused *ledger.RefusedError
	var late *ledger.StateError
	if err := acts[h.rand.IntN(len(acts))](); err != nil && !errors.As(err, &refused) && !errors.As(err, &late) {
		require.NoError(h.t, err)
	}
}

func (h history) minutes(least, most int) time.Duration {
	return time.Duration(least+h.rand.IntN(most-least+1)) * time.Minute
}

func (h history) take() error {
	_, err := h.ledger.Allocate(h.t.Context(), h.actor,
		ledger.AllocateRequest{Pool: "a100", GPUs: 1 + h.rand.IntN(8), Lease: h.minutes(5, 60)})
	return err
}

func (h history) book() error {
	_, err := h.ledger.Reserve(h.t.Context(), h.actor, ledger.ReserveRequest{
		Pool: "a100", GPUs: 1 + h.rand.IntN(16), Class: reservation.Guaranteed,
		Window: window(h.clock.Now().Add(h.minutes(0, 30)), h.minutes(5, 60)),
	})
	return err
}

func (h history) claim() error {
	for _, r := range h.reservations() {
		if r.State() == reservation.Ready {
			_, err := h.ledger.Claim(h.t.Context(), h.actor, r.ID, h.minutes(5, 30), "")
			return err
		}
	}
	return nil
}

func (h history) giveBack() error {
	if held := h.allocations(); len(held) > 0 {
		_, err := h.ledger.Release(h.t.Context(), h.actor, held[h.rand.IntN(len(held))].ID)
		return err
	}
	return nil
}

func (h history) cancel() error {
	for _, r := range h.reservations() {
		if r.State() == reservation.Booked {
			_, err := h.ledger.CancelReservation(h.t.Context(), h.actor, r.ID)
			return err
		}
	}
	return nil
}

// fail prepares one of the faults a provider is known for, for the next calls.
func (h history) fail() error {
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
	return h.clouds()[h.rand.IntN(len(h.clouds()))].Inject(f)
}

// lose takes a machine away without a word.
func (h history) lose() error {
	for _, line := range h.cloud.Bill(h.clock.Now()).Lines {
		if line.To.Equal(h.clock.Now()) {
			return h.cloud.Kill(line.ID)
		}
	}
	return nil
}

// keep has an operator keep a node that is ready.
func (h history) keep() error { return h.steer(node.Ready, h.ledger.QuarantineNode) }

// resume has an operator take a node back.
func (h history) resume() error { return h.steer(node.Quarantined, h.ledger.ResumeNode) }

func (h history) steer(in node.State, verb func(context.Context, ledger.Actor, string) (node.Node, error)) error {
	for _, n := range h.nodes() {
		if n.State() == in {
			_, err := verb(h.t.Context(), h.actor, n.ID)
			return err
		}
	}
	return nil
}

// early claims what is booked, however far off its window is.
func (h history) early() error {
	for _, r := range h.reservations() {
		if r.Placed() {
			_, err := h.ledger.Claim(h.t.Context(), h.actor, r.ID, 0, "")
			return err
		}
	}
	return nil
}

func (h history) restart() error {
	h.start(parts{})
	return nil
}
