package load

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	in := contract.AllocationCreate{Pool: h.drawPool(), GPUs: []int{1, 1, 1, 2}[h.chance.IntN(4)], Name: name,
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
