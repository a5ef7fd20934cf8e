package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/internal/strictyaml"
	"github.com/forewarm/forewarm/ledger"
)

// poolNames lists the pools that are there, by name.
func poolNames(ctx context.Context, store ledger.Store) (names []string, err error) {
	err = store.Read(ctx, func(r ledger.Reader) error {
		names = nil
		for after := ""; ; {
			page, err := r.Pools(ledger.Page{After: after, Limit: 500})
			if err != nil {
				return fmt.Errorf("listing pools: %w", err)
			}
			if len(page) == 0 {
				return nil
			}
			for _, p := range page {
				after = p.ID
				if p.DeletedAt.IsZero() {
					names = append(names, p.Name)
				}
			}
		}
	})
	slices.Sort(names)
	return names, err
}

// doubtPools says of each pool under scheduling.pools that is not there. That is a warning and no error: pools are kept
// in the database, and one may be made later.
func (s Scheduling) doubtPools(there []string) (doubts []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		if slices.Contains(there, name) {
			continue
		}
		fix := "no pool is there yet"
		if near, ok := strictyaml.Closest(name, there); ok {
			fix = "write " + near
		} else if len(there) > 0 {
			fix = "there are " + strings.Join(there, ", ")
		}
		doubts = append(doubts, fmt.Sprintf("scheduling.pools.%s changes nothing until there is a pool %q: %s",
			name, name, fix))
	}
	return doubts
}

// examineScheduling misses the pools that have rules of their own.
func (d *doctor) examineScheduling(ctx context.Context, a *app) {
	if len(d.cfg.Scheduling.Pools) == 0 {
		return
	}
	there, err := poolNames(ctx, a.store)
	if err != nil {
		d.add("scheduling", verdictFailed, "%v", err)
		return
	}
	doubts := d.cfg.Scheduling.doubtPools(there)
	d.addDoubts("scheduling", doubts)
	if len(doubts) == 0 {
		d.add("scheduling", verdictOK, "each pool that scheduling.pools names is there")
	}
}
