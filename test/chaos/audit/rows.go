package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// Rows are the ledger at one moment.
type Rows struct {
	invariants.Rows
	Reservations map[string]reservation.Reservation
	Allocations  map[string]allocation.Allocation
	Nodes        []node.Node // that ever were
	Orphans      []ledger.Orphan
	// Overlaps are GPUs that two allocations held at one time.
	Overlaps []string
	// Cleaned is when allocations were proved to have left nothing.
	Cleaned map[string]time.Time
}

// pageSize is how many nodes one question asks for.
const pageSize = 500

// overlaps compares who held what GPU when. It is SQL of its own, so that no
// code of the ledger can hide what the rows say.
const overlaps = `SELECT a.gpu_uuid, a.allocation_id, b.allocation_id FROM allocation_gpus a
	JOIN allocation_gpus b ON a.gpu_uuid = b.gpu_uuid AND a.allocation_id < b.allocation_id
	WHERE a.since < COALESCE(b.until, 9223372036854775807) AND b.since < COALESCE(a.until, 9223372036854775807)`

// Read reads the rows from the database itself.
func Read(ctx context.Context, url string, history bool) (rows Rows, err error) {
	store, err := sqlledger.Open(ctx, sqlledger.Config{URL: url, Clock: clock.System{}, Seed: 1})
	if err != nil {
		return rows, fmt.Errorf("opening the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = store.Read(ctx, func(r ledger.Reader) error {
		if rows.Rows, err = invariants.Gather(r, history); err != nil {
			return err
		}
		if rows.Orphans, err = r.Orphans(ledger.OrphanFilter{}); err != nil {
			return err
		}
		rows.Nodes, err = readNodes(r)
		return err
	})
	if err != nil {
		return rows, fmt.Errorf("reading the ledger: %w", err)
	}
	rows.indexRows()
	if rows.Overlaps, err = heldTwice(ctx, url); err == nil && history {
		rows.Cleaned, err = cleanedAt(ctx, url)
	}
	return rows, err
}

// cleanedAt reads when each allocation was proved clean last, which is of the last of its nodes.
func cleanedAt(ctx context.Context, url string) (map[string]time.Time, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT subject, MAX(at) FROM events WHERE type = 'allocation.cleaned' GROUP BY subject`)
	if err != nil {
		return nil, fmt.Errorf("reading what was proved clean: %w", err)
	}
	defer rows.Close()
	all := map[string]time.Time{}
	for rows.Next() {
		var id string
		var micros int64
		if err := rows.Scan(&id, &micros); err != nil {
			return nil, fmt.Errorf("reading what was proved clean: %w", err)
		}
		all[id] = time.UnixMicro(micros).UTC()
	}
	return all, rows.Err()
}

func readNodes(r ledger.Reader) ([]node.Node, error) {
	var all []node.Node
	for page := (ledger.Page{Limit: pageSize}); ; {
		some, err := r.Nodes(ledger.NodeFilter{}, page)
		if err != nil {
			return nil, fmt.Errorf("reading nodes: %w", err)
		}
		all = append(all, some...)
		if len(some) < pageSize {
			return all, nil
		}
		page.After = some[len(some)-1].ID
	}
}

func (r *Rows) indexRows() {
	r.Reservations, r.Allocations = map[string]reservation.Reservation{}, map[string]allocation.Allocation{}
	for _, v := range r.OverReservations {
		r.Reservations[v.ID] = v
	}
	for _, a := range r.OverAllocations {
		r.Allocations[a.ID] = a
	}
	for _, p := range r.Pools {
		for _, v := range p.Reservations {
			r.Reservations[v.ID] = v
		}
		for _, a := range p.Allocations {
			r.Allocations[a.ID] = a
		}
	}
}

func heldTwice(ctx context.Context, url string) (found []string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, overlaps)
	if err != nil {
		return nil, fmt.Errorf("comparing who held what: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var gpu, one, other string
		if err := rows.Scan(&gpu, &one, &other); err != nil {
			return nil, fmt.Errorf("comparing who held what: %w", err)
		}
		found = append(found, fmt.Sprintf("GPU %s was held by %s and by %s at one time", gpu, one, other))
	}
	return found, rows.Err()
}
