package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// holder allocates GPUs of nodes with daemons, works there, and gives them back, one
// allocation after the other.
type holder struct {
	*visitor
	tide   tide
	steady bool // they come at all times
	made   int  // allocations
}

func (h *holder) runHolder(ctx context.Context) {
	for h.tide.awaitFlood(ctx) {
		h.made++
		h.holdOnce(ctx, fmt.Sprintf("%s-%d", h.name, h.made))
		waitFor(ctx, time.Duration(h.chance.Int64N(int64(time.Second))))
	}
}

// holdOnce holds GPUs for a while. Half of those who give them back do so while their
// commands run; others leave them to the end of the lease.
func (h *holder) holdOnce(ctx context.Context, name string) {
	in := contract.AllocationCreate{Pool: h.Pool, GPUs: []int{1, 1, 1, 2}[h.chance.IntN(4)], Name: name,
		LeaseSeconds: int64(8 + h.chance.IntN(12))}
	a, ok := h.allocate(ctx, in)
	if !ok {
		return
	}
	working, leave := context.WithTimeout(context.WithoutCancel(ctx),
		time.Duration(in.LeaseSeconds)*time.Second+slackOfVisit)
	var work sync.WaitGroup
	stays := make([]stay, 1+h.chance.IntN(3))
	for i := range stays {
		stays[i] = h.drawStay()
	}
	work.Go(func() { h.visitAll(working, a.ID, stays) })
	giveBack, early := h.chance.IntN(6) > 0, h.chance.IntN(2) == 0
	if patient := time.Duration(2000+h.chance.IntN(5000)) * time.Millisecond; early {
		waitFor(ctx, patient)
	} else {
		work.Wait()
	}
	if giveBack {
		h.release(ctx, a.ID, name)
	}
	work.Wait()
	leave()
}

// allocate asks for GPUs until it is answered.
func (h *visitor) allocate(ctx context.Context, in contract.AllocationCreate) (contract.Allocation, bool) {
	a, ok := askUntilAnswered(ctx, h.caller, request[contract.Allocation]{Allocate, in.Name,
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Allocate(ctx, in, client.Options{})
		}, allocationID})
	if ok {
		h.recordEffect(Entry{Op: Allocate, ID: a.ID, Name: in.Name, Devices: deviceIDs(a)})
	}
	return a, ok
}

func (h *visitor) release(ctx context.Context, id, name string) {
	_, ok := askUntilAnswered(ctx, h.caller, request[contract.Allocation]{Release, name + "-release",
		func(ctx context.Context, c *client.Client) (contract.Allocation, error) {
			return c.Release(ctx, id)
		}, allocationID})
	if ok {
		h.recordEffect(Entry{Op: Release, ID: id})
	}
}

// visitAll visits the first node of an allocation, again after what failed, until all stays
// are over, or the allocation.
func (h *visitor) visitAll(ctx context.Context, allocationID string, stays []stay) {
	for len(stays) > 0 && ctx.Err() == nil {
		err := h.visitNode(ctx, allocationID, stays[0])
		switch {
		case err == nil:
			stays = stays[1:]
		case h.isOver(ctx, allocationID):
			return
		}
		waitFor(ctx, 200*time.Millisecond)
	}
}

// LastVisits holds so many GPUs of nodes with daemons at once, each in an allocation of its
// own, and visits all of them: the last holders see what those before them left, and show
// that the GPUs can be had.
func (l *Load) LastVisits(ctx context.Context, gpus int) error {
	var held []string
	v := l.holders[0].visitor
	var failed error
	for i := 0; len(held) < gpus && ctx.Err() == nil; i++ {
		in := contract.AllocationCreate{Pool: v.Pool, GPUs: 1, LeaseSeconds: 120, Name: fmt.Sprintf("%s-last-%d", v.name, i)}
		if a, ok := v.allocate(ctx, in); ok {
			held = append(held, a.ID)
			failed = errors.Join(failed, v.visitUntilSeen(ctx, a.ID))
			continue
		}
		waitFor(ctx, time.Second)
	}
	if len(held) < gpus {
		failed = errors.Join(failed, fmt.Errorf("of %d GPUs of nodes with daemons, %d can be had", gpus, len(held)))
	}
	return failed
}

// visitUntilSeen visits a node until it has worked once.
func (h *visitor) visitUntilSeen(ctx context.Context, allocationID string) error {
	for {
		err := h.visitNode(ctx, allocationID, stay{quarters: 1, manner: "willing"})
		if err == nil || ctx.Err() != nil || h.isOver(ctx, allocationID) {
			return err
		}
		waitFor(ctx, 500*time.Millisecond)
	}
}
