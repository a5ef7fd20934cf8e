package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/contract"
)

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
func (v *visitor) visitUntilSeen(ctx context.Context, allocationID string) error {
	for {
		err := v.visitNode(ctx, allocationID, stay{quarters: 1, manner: "willing"})
		if err == nil || ctx.Err() != nil || v.isOver(ctx, allocationID) {
			return err
		}
		waitFor(ctx, 500*time.Millisecond)
	}
}
