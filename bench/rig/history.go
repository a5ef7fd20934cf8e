package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// EventsOfOne is how many events a past booking left, at least: see pastEvents.
const EventsOfOne = 6

// The past begins a year before it ends, a few hours before now.
const (
	pastLength = 365 * 24 * time.Hour
	pastEnds   = 3 * time.Hour
)

// pastStep is how many bookings one statement writes.
const pastStep = 100_000

// History is what AddHistory writes.
type History struct {
	Bookings int
	Events   bool // with them
}

// AddHistory writes what bookings of a year left behind in the pool, as it would lie
// in the tables: each a reservation of one GPU for an hour, with its events, and
// decision records of the usual sizes. Of ten, eight were claimed, and left an
// allocation with its GPU; for one nobody came; one was cancelled. Each eight had a
// node. It ends with what a database at work has done long ago: VACUUM, statistics, a
// checkpoint.
func (i *Installation) AddHistory(ctx context.Context, h History) (err error) {
	conn, err := pgx.Connect(ctx, i.URL)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, timeOfID); err != nil {
		return fmt.Errorf("writing history: %w", err)
	}
	begin := time.Now().Add(-pastEnds - pastLength).UnixMicro()
	for from := 0; from < h.Bookings; from += pastStep {
		last := min(from+pastStep, h.Bookings) - 1
		work := fmt.Sprintf(pastWork, begin, (pastLength / time.Duration(h.Bookings)).Microseconds(), i.Actor.OrganizationID,
			PoolName, i.Actor.KeyID, from, last)
		tables := []string{pastNodes, pastDevices, pastReservations, pastAllocations, pastHolds}
		if h.Events {
			tables = append(tables, pastEvents)
		}
		for _, table := range tables {
			if _, err := conn.Exec(ctx, work+table); err != nil {
				return fmt.Errorf("writing history: %w", err)
			}
		}
	}
	for _, statement := range []string{"VACUUM (ANALYZE)", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return countHistory(ctx, conn, h)
}

// countHistory sees to it that no figure is of less than it says.
func countHistory(ctx context.Context, conn *pgx.Conn, h History) error {
	var bookings, events int
	if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM reservations WHERE ended_at > 0), "+
		"(SELECT count(*) FROM events)").Scan(&bookings, &events); err != nil {
		return fmt.Errorf("counting the history: %w", err)
	}
	if bookings < h.Bookings || h.Events && events < h.Bookings*EventsOfOne {
		return fmt.Errorf("the history has %d bookings of %d, and %d events", bookings, h.Bookings, events)
	}
	return nil
}

// timeOfID makes what the ids of a time begin with, which lists go by: see the package
// ids.
const timeOfID = `CREATE FUNCTION pg_temp.time_of_id(micros bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (((micros / 1000 << 2 | 1) >> bits) & 31)::int + 1, 1),
		'' ORDER BY bits DESC) FROM generate_series(0, 45, 5) AS bits $$`

// pastWork gives the bookings from one number to another, a row each: when it was made,
// what became of it, the node that served it and when that was asked for, the ids in the
// order of time.
const pastWork = `WITH work AS (
	SELECT i, %[1]d + i * step AS at, %[1]d + (i / 8 * 8) * step AS node_at, 8 * step AS spread,
		'%[3]s' AS org, (SELECT id FROM pools WHERE name = '%[4]s') AS pool, '%[5]s' AS key,
		CASE i %% 10 WHEN 0 THEN 'expired' WHEN 1 THEN 'cancelled' ELSE 'claimed' END AS fate,
		'rsv_05' || lpad(i::text, 12, '0') || substr(md5('r' || i), 1, 12) AS reservation,
		'alc_' || pg_temp.time_of_id(%[1]d + i * step + 600000000) || lpad(i::text, 8, '0') ||
			substr(md5('a' || i), 1, 8) AS allocation,
		'nod_05' || lpad((i / 8)::text, 12, '0') || substr(md5('n' || i / 8), 1, 12) AS node,
		'GPU-SIM-' || md5('u' || i / 8)::uuid || '-' || i %% 8 AS gpu, i / 8 %% 1250 AS slot,
		60000000::bigint AS minute
	FROM generate_series(%[6]d, %[7]d) AS i, (SELECT %[2]d::bigint AS step) AS s) `

const (
	pastNodes = `INSERT INTO nodes
		SELECT node, pool, slot, 1, md5(node), 'sim-' || substr(md5(node), 1, 16),
			'sim-' || substr(md5(node), 1, 16) || '.sim.invalid', true, 'pre_warm', 'sim', '', 'bench-8', 20000000, 0,
			node_at + 3 * minute, node_at + spread + 80 * minute, 0, '', 'gone', node_at + 2 * minute,
			node_at + 3 * minute, node_at + 8 * minute, 0, node_at + spread + 75 * minute,
			node_at + spread + 79 * minute, node_at + spread + 80 * minute, 8
		FROM work WHERE i % 8 = 0 ORDER BY i`
	pastDevices = `INSERT INTO gpus SELECT node, gpu, i % 8, 'h100-80g', 81920 FROM work ORDER BY i`

	pastReservations = `INSERT INTO reservations
		SELECT reservation, org, pool, '', 'guaranteed', 'person', key, '', 'online', at + 10 * minute,
			at + 70 * minute, 1, 1, 0, '[' || slot || ']', '', 0, false,
			CASE fate WHEN 'cancelled' THEN 'cancelled' ELSE '' END, CASE fate WHEN 'expired' THEN 2500000 ELSE 0 END,
			fate, at, at, CASE fate WHEN 'cancelled' THEN 0 ELSE at + 2 * minute END,
			CASE fate WHEN 'cancelled' THEN 0 ELSE at + 8 * minute END,
			at + CASE fate WHEN 'cancelled' THEN 1 WHEN 'claimed' THEN 10 ELSE 30 END * minute, 5
		FROM work ORDER BY i`
	pastAllocations = `INSERT INTO allocations
		SELECT allocation, org, pool, '', key, '', 'online', 1, 1, 0, '[' || slot || ']', '["' || reservation || '"]',
			60 * minute, at + 10 * minute, at + 70 * minute, 'released', 'released', at + 10 * minute,
			at + 10 * minute, at + 70 * minute, at + 60 * minute, 2083333, 4
		FROM work WHERE fate = 'claimed' ORDER BY i`
	pastHolds = `INSERT INTO allocation_gpus
		SELECT allocation, node, gpu, i % 8, at + 10 * minute, at + 60 * minute
		FROM work WHERE fate = 'claimed' ORDER BY i`

	// A claimed booking has 6 events, one that nobody came for 4, a cancelled one 2, a
	// node 8. record is how many characters a decision record has beside its frame.
	pastEvents = `INSERT INTO events (organization_id, at, type, subject, pool_id, actor, via, reason, message, decision)
		SELECT CASE WHEN e.of = 'node' THEN '' ELSE org END, work.at + e.after * minute, e.type,
			CASE e.of WHEN 'node' THEN node WHEN 'claimed' THEN allocation ELSE reservation END, pool,
			CASE e.via WHEN 'api' THEN key ELSE 'system' END, e.via, e.reason, e.message,
			CASE WHEN e.record = 0 THEN '' ELSE '{"kind":"' || e.kind || '","engine":"past","record":{"version":1,"text":"' ||
				repeat(md5(reservation), e.record / 32) || '"}}' END
		FROM work CROSS JOIN (VALUES
			('any', 0, 'reservation.booked', 'api', '', 'admission', 860,
				'1 GPU in bench from Thu 2025-12-10 05:00:00Z to Thu 2025-12-10 06:00:00Z'),
			('cancelled', 1, 'reservation.cancelled', 'api', 'cancelled', '', 0, ''),
			('warmed', 2, 'reservation.warming', 'planner', 'lead_time_reached', 'prewarm', 390,
				'1 GPU in bench, at once (a boot takes up to 300s here)'),
			('warmed', 8, 'reservation.ready', 'planner', 'nodes_ready', 'placement', 430,
				'1 GPU warm 6m0s after it was asked for'),
			('expired', 30, 'reservation.expired', 'planner', 'not_claimed', 'placement', 390, 'nobody came'),
			('reserved', 10, 'reservation.claimed', 'api', '', '', 0, ''),
			('claimed', 10, 'allocation.active', 'api', '', 'admission', 860, '1 GPU in bench until 06:00:00Z'),
			('claimed', 60, 'allocation.released', 'api', 'released', '', 0, ''),
			('node', 2, 'node.requested', 'planner', 'pre_warm', 'prewarm', 290, 'for a slot of bench'),
			('node', 3, 'node.provisioning', 'worker', 'pre_warm', '', 0, ''),
			('node', 3, 'node.booting', 'worker', 'pre_warm', '', 0, 'sim-8ecd677c41101833 is booting'),
			('node', 8, 'node.ready', 'worker', 'pre_warm', '', 0, '8 GPUs proved usable after 5m'),
			('node', 75, 'node.draining', 'planner', 'idle', 'retire', 390, ''),
			('node', 75, 'node.deprovisioning', 'worker', 'idle', '', 0, ''),
			('node', 79, 'node.absent', 'worker', 'idle', '', 0, ''),
			('node', 80, 'node.gone', 'worker', 'idle', '', 0, ''))
			AS e (of, after, type, via, reason, kind, record, message)
		WHERE e.of IN ('any', fate) OR e.of = 'warmed' AND fate <> 'cancelled'
			OR e.of = 'reserved' AND fate = 'claimed' OR e.of = 'node' AND i % 8 = 0
		ORDER BY work.at + e.after * minute`
)
