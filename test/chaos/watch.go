package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/test/chaos/audit"
)

// watchEvery is how often a line of progress is printed and the rows are looked
// at while everything breaks.
const watchEvery = 5 * time.Second

// watchRun says how it goes, and checks at each moment what must be true at every
// moment.
func (g *game) watchRun(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var before *invariants.Rows
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before = g.checkRows(ctx, before)
		faults := 0
		for _, n := range g.breaker.Struck() {
			faults += n
		}
		g.printProgress("%d operations, %d faults, %d machines; broken: %s", g.journal.Operations(), faults,
			g.site.Cloud.CountLive(),
			cmp.Or(strings.Join(g.breaker.Broken(), ", "), "nothing"))
	}
}

// checkRows reads the rows from PostgreSQL itself. When it does not answer, nothing is
// known of this moment.
func (g *game) checkRows(ctx context.Context, before *invariants.Rows) *invariants.Rows {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	rows, err := audit.Read(ctx, g.site.Postgres.URL(), false)
	if err != nil {
		return before
	}
	found := invariants.Check(rows.Rows)
	if before != nil {
		found = append(found, invariants.Between(*before, rows.Rows)...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.samples++
	for _, v := range found {
		g.broken[v.String()] = true
	}
	return &rows.Rows
}
