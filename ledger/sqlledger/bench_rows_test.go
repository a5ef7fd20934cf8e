package sqlledger

import (
	"fmt"
	"reflect"
	"testing"
)

// benchedRows are rows as a batch of bookings writes them.
func benchedRows(n int) []reservationRow {
	rows := make([]reservationRow, n)
	for i := range rows {
		rows[i] = reservationRow{Head: nextVersion(fmt.Sprintf("rsv_%026d", i), 0), OrganizationID: "org_1",
			PoolID: "pol_1", Class: "guaranteed", Origin: "user", MadeBy: "key_1", Workload: "online", Start: 1, End: 2,
			Nodes: 1, PerNode: 4, Slots: "[12]", Cost: 8_000_000, State: "booked", Created: 1, Booked: 1}
	}
	return rows
}

// BenchmarkEncodeRows is what the server pays to encode rows for PostgreSQL: many as
// arrays, and one alone.
func BenchmarkEncodeRows(b *testing.B) {
	t := typeOf[reservationRow]()
	for _, n := range []int{1, chunkSize} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rows := benchedRows(n)
			b.ReportAllocs()
			for b.Loop() {
				if n == 1 {
					t.encodeParameters(reflect.ValueOf(rows).Index(0), false)
				} else {
					t.encodeColumns(reflect.ValueOf(rows))
				}
			}
		})
	}
}

// BenchmarkScanRows is what it pays to decode one row.
func BenchmarkScanRows(b *testing.B) {
	t := typeOf[reservationRow]()
	values := t.encodeParameters(reflect.ValueOf(benchedRows(1)).Index(0), false)
	var rows []reservationRow
	add := appendRows(&rows)
	b.ReportAllocs()
	for b.Loop() {
		rows = rows[:0]
		if err := add(values); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQueryText is what it pays for the text of a query.
func BenchmarkQueryText(b *testing.B) {
	var rows []reservationRow
	b.ReportAllocs()
	for b.Loop() {
		queryRows("reading reservations", &rows, "FROM reservations WHERE pool_id = ?", "pol_1").toStatement()
	}
}
