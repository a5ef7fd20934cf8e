// Package burnin tests the memory of GPUs, and overwrites it, by the CUDA driver.
//
// Each GPU is worked on by a child process of its own, which opens the driver's library, takes
// all memory that is free, writes patterns that differ at each address, has the GPU compare
// them by a small kernel, and writes zeros at last. A child that does not end in time is asked
// to end, and left alone: a call into a wedged driver never returns.
package burnin

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// State is what came of a test or of overwriting.
type State string

// The states.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped" // nothing was done, for a reason that is given
)

// Result is what came of a test of a GPU's memory, or of overwriting it.
type Result struct {
	State  State  `json:"state"`
	Detail string `json:"detail"`            // a sentence for people
	MiB    uint64 `json:"mib,omitempty"`     // of memory that were worked on
	AllMiB uint64 `json:"all_mib,omitempty"` // that the GPU has
}

// Mode says whether what can be done on a GPU is.
type Mode string

// The modes.
const (
	Auto    Mode = "auto"    // where there is CUDA
	Require Mode = "require" // where there is none, the GPU counts as failed
	Never   Mode = "none"
)

// Modes are all of them.
var Modes = []Mode{Auto, Require, Never}

// apply returns what a result means under a mode.
func (m Mode) apply(r Result) Result {
	if r.State == Skipped && m == Require {
		return Result{State: Failed, Detail: r.Detail + ", and it is required"}
	}
	return r
}

// Prober works on the GPUs of one machine.
type Prober interface {
	// Test tests the memory of a GPU that is free, or of a MIG device.
	Test(ctx context.Context, uuid string) Result
	// Overwrite overwrites the memory of one that is free, and reads back that it did.
	Overwrite(ctx context.Context, uuid string) Result
}

// againAfter is how long after a failure a GPU is tested again: nothing is held against it that
// is not found twice.
const againAfter = 10 * time.Second

// Tester tests GPUs before anybody uses them.
type Tester struct {
	Prober Prober
	Mode   Mode
	Again  time.Duration // after a failure, until the second test; 0: ten seconds
}

// Test tests the memory of GPUs at once, those that fail a second time after a while. The error
// is the context's.
func (t Tester) Test(ctx context.Context, uuids []string) (map[string]Result, error) {
	if t.Mode == Never {
		return forEach(uuids, func(string) Result { return Result{State: Skipped, Detail: "burn_in is none"} }), ctx.Err()
	}
	test := func(uuid string) Result { return t.Mode.apply(t.Prober.Test(ctx, uuid)) }
	all := forEach(uuids, test)
	var failed []string
	for uuid, r := range all {
		if r.State == Failed {
			failed = append(failed, uuid)
		}
	}
	if len(failed) == 0 {
		return all, ctx.Err()
	}
	timer := time.NewTimer(cmp.Or(t.Again, againAfter))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	for uuid, r := range forEach(failed, test) {
		if r.State == Failed {
			r.Detail += " (twice: " + all[uuid].Detail + ")"
		} else {
			r.Detail += "; a first test failed: " + all[uuid].Detail
		}
		all[uuid] = r
	}
	return all, ctx.Err()
}

// forEach does something for each GPU, all at the same time.
func forEach(uuids []string, do func(uuid string) Result) map[string]Result {
	type one struct {
		uuid string
		Result
	}
	results := make(chan one)
	for _, uuid := range uuids {
		go func() { results <- one{uuid, do(uuid)} }()
	}
	all := map[string]Result{}
	for range uuids {
		r := <-results
		all[r.uuid] = r.Result
	}
	return all
}

// Simulated is a prober of GPUs that do not exist, and says so.
type Simulated struct{}

// Test passes.
func (Simulated) Test(context.Context, string) Result {
	return Result{State: Passed, Detail: "SIM: the GPU is simulated, and has no memory to test"}
}

// Overwrite passes.
func (Simulated) Overwrite(context.Context, string) Result {
	return Result{State: Passed, Detail: "SIM: no memory to overwrite"}
}

// mib writes a number of bytes.
func mib(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
