package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/gpu"
)

// Tester tests the memory of GPUs, twice where the first test fails. The error is the context's.
type Tester interface {
	Test(ctx context.Context, uuids []string) (map[string]burnin.Result, error)
}

// TestWith has GPUs be tested before they are used.
func (w *Watcher) TestWith(t Tester) { w.tester = t }

// BurnIn tests the memory of those GPUs of a look that were not tested since the machine booted, or an operator cleared
// what spoke against them, and reports whether there were any: the look says nothing of that yet. It takes seconds, and
// half a minute or two with a driver that hangs. A GPU that is held, or on which something runs, is not tested.
func (w *Watcher) BurnIn(ctx context.Context, look contract.NodeLook, held []string) (tested bool) {
	if w.tester == nil {
		return false
	}
	var free []string
	for _, g := range look.GPUs {
		if _, known := w.memory.BurnIns[g.UUID]; known || g.Lost || look.Source == "none" {
			continue
		}
		switch {
		case slices.Contains(held, g.UUID):
			w.note(g.UUID, burnin.Result{State: burnin.Skipped, Detail: "it was held"})
		case g.Processes != nil && *g.Processes > 0 && look.Source != gpu.FromSimulated:
			w.note(g.UUID, burnin.Result{State: burnin.Skipped, Detail: fmt.Sprintf("%d processes were on it", *g.Processes)})
		default:
			free = append(free, g.UUID)
			continue
		}
		tested = true
	}
	if len(free) == 0 {
		return tested
	}
	all, err := w.tester.Test(ctx, free)
	if err != nil { // the daemon is told to end
		return tested
	}
	for uuid, r := range all {
		w.note(uuid, r)
	}
	return true
}

func (w *Watcher) note(uuid string, r burnin.Result) {
	text := r.Detail[:min(len(r.Detail), 240)] // evidence says a little more
	w.memory.BurnIns[uuid] = contract.BurnIn{State: string(r.State), Detail: strings.ToValidUTF8(text, "")}
}

// failedBurnIn says why the test of a GPU failed; empty: it did not.
func (w *Watcher) failedBurnIn(uuid string) string {
	if b := w.memory.BurnIns[uuid]; b.State == string(burnin.Failed) {
		return b.Detail
	}
	return ""
}
