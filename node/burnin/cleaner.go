package burnin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Clocks resets the clocks of GPUs.
type Clocks interface {
	// ResetClocks has GPUs choose their clocks by themselves, and says what came of it. An error says that one runs with
	// others all the same.
	ResetClocks(ctx context.Context, uuids []string) (said string, err error)
}

// Settings sets GPUs as they were.
type Settings interface {
	// Restore says what came of it; nothing, where there is nothing to say. An error says what is still otherwise.
	Restore(ctx context.Context, uuids []string) (said string, err error)
}

// Cleaner cleans GPUs of whoever had them last.
type Cleaner struct {
	Prober Prober
	Mode   Mode
	Clocks Clocks // nil: they stay as they are
	// Settings restores all other settings; nil: they stay as they are.
	Settings Settings
}

// Clean restores how GPUs were set, resets their clocks, and overwrites their memory, which nothing uses any more: in
// this order, as what a holder set can slow the overwriting down or refuse it. It says what was done. Each step is
// tried, whichever fails. An error says that something of the last holder may be left.
func (c Cleaner) Clean(ctx context.Context, uuids []string) (said string, err error) {
	steps := []func(context.Context, []string) (string, error){c.overwrite}
	if c.Clocks != nil {
		steps = slices.Insert(steps, 0, c.Clocks.ResetClocks)
	}
	if c.Settings != nil {
		steps = slices.Insert(steps, 0, c.Settings.Restore)
	}
	var all []string
	var failed []error
	for _, step := range steps {
		text, err := step(ctx, uuids)
		failed = append(failed, err)
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; "), errors.Join(failed...)
}

func (c Cleaner) overwrite(ctx context.Context, uuids []string) (said string, err error) {
	if c.Mode == Never {
		return "memory of GPUs not overwritten (overwrite is none)", nil
	}
	var done Result
	passed, not, failed := 0, map[string]int{}, []error{}
	results := forEach(uuids, func(uuid string) Result { return c.Mode.apply(c.Prober.Overwrite(ctx, uuid)) })
	for _, uuid := range slices.Sorted(maps.Keys(results)) {
		switch r := results[uuid]; r.State {
		case Passed:
			done.Detail, done.MiB, done.AllMiB = r.Detail, done.MiB+r.MiB, done.AllMiB+r.AllMiB
			passed++
		case Skipped:
			not[r.Detail]++
		default:
			failed = append(failed, fmt.Errorf("the memory of GPU %s was not overwritten: %s", uuid, r.Detail))
		}
	}
	var all []string
	if passed == 1 || passed > 0 && done.AllMiB == 0 {
		all = append(all, done.Detail)
	} else if passed > 1 {
		all = append(all, fmt.Sprintf("%d of %d MiB of %d GPUs overwritten and read back", done.MiB, done.AllMiB, passed))
	}
	for _, why := range slices.Sorted(maps.Keys(not)) {
		all = append(all, fmt.Sprintf("memory of %d of %d GPUs not overwritten (%s)", not[why], len(uuids), why))
	}
	return strings.Join(all, "; "), errors.Join(failed...)
}
