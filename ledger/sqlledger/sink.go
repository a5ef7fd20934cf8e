package sqlledger

import (
	"fmt"
	"reflect"
)

// sink is where a change is written to, in order. What fails spoils the
// transaction; nothing after it is written.
type sink interface {
	// insert adds rows, a slice of t's. conflict is what becomes of one that is
	// there already; empty: it is an error.
	insert(doing string, t *rowType, rows reflect.Value, conflict string)
	// replace writes rows over the versions before theirs: ErrConflict if one of
	// them is not the current one.
	replace(doing string, t *rowType, rows reflect.Value)
	// exec runs a statement. If unmet is not nil it is what a statement means that
	// does not change exactly one row.
	exec(doing, text string, unmet error, args ...any)
	// refer says what the rows that follow refer to without a foreign key on
	// PostgreSQL: it must be there.
	refer(organizations, pools []string)
	// flush ends the writing, and with commit the transaction.
	flush(commit bool) error
}

// insertRows adds rows that have no versions.
func insertRows[R tabled](s sink, what string, rows []R, conflict string) {
	if len(rows) > 0 {
		s.insert("adding "+what, typeOf[R](), reflect.ValueOf(rows), conflict)
	}
}

// versionedRow is a row that may only be written over the version it was read at.
type versionedRow interface {
	tabled
	identity() head
}

// saveRows adds the rows that are new and replaces the others, these first: they
// may give up what a new one takes.
func saveRows[T any, R versionedRow](s sink, what string, items []T, toRow func(T) R) {
	var fresh, changed []R
	for _, item := range items {
		row := toRow(item)
		if row.identity().Version == 1 {
			fresh = append(fresh, row)
		} else {
			changed = append(changed, row)
		}
	}
	if len(changed) > 0 {
		s.replace("saving "+named(what, changed), typeOf[R](), reflect.ValueOf(changed))
	}
	if len(fresh) > 0 {
		s.insert("saving "+named(what, fresh), typeOf[R](), reflect.ValueOf(fresh), "")
	}
}

// named is what a caller is told was being saved.
func named[R versionedRow](what string, rows []R) string {
	if len(rows) == 1 {
		return what + " " + rows[0].identity().ID
	}
	return fmt.Sprintf("%d %ss", len(rows), what)
}
