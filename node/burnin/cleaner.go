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

// Clean overwrites the memory of GPUs that nothing uses any more, resets their clocks, and restores how they were set
// otherwise, and says what was done. An
// error says that something of the last holder may be left.
func (c Cleaner) Clean(ctx context.Context, uuids []string) (said string, err error) {
	var all []string
	if c.Mode == Never {
		all = append(all, "memory of GPUs not overwritten (overwrite is none)")
	} else {
		text, err := c.overwrite(ctx, uuids)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	if c.Clocks != nil {
		text, err := c.Clocks.ResetClocks(ctx, uuids)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	if c.Settings != nil {
		text, err := c.Settings.Restore(ctx, uuids)
		if err != nil {
			return "", err
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; "), nil
}

func (c Cleaner) overwrite(ctx context.Context, uuids []string) (said string, err error) {
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
