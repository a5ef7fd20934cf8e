package sqlledger

import (
	"fmt"
	"reflect"
)

// changeWriter is where a change is written to, in order. What fails spoils the
// transaction; nothing after it is written.
type changeWriter interface {
	// insertRows adds rows, a slice of t's. conflict is what becomes of one that is
	// there already; empty: it is an error.
	insertRows(doing string, t *rowType, rows reflect.Value, conflict string)
	// replaceRows writes rows over the versions before theirs: ErrConflict if one of
	// them is not the current one.
	replaceRows(doing string, t *rowType, rows reflect.Value)
	// execStatement runs a statement. If unmet is not nil it is what a statement means that
	// does not change exactly one row.
	execStatement(doing, text string, unmet error, args ...any)
	// checkReferences says what the rows that follow refer to without a foreign key on
	// PostgreSQL: it must be there.
	checkReferences(organizations, pools []string)
	// flushChanges ends the writing, and with commit the transaction.
	flushChanges(commit bool) error
}

// addRows adds rows that have no versions.
func addRows[R tableRow](s changeWriter, what string, rows []R, conflict string) {
	if len(rows) > 0 {
		s.insertRows("adding "+what, typeOf[R](), reflect.ValueOf(rows), conflict)
	}
}

// versionedRow is a row that may only be written over the version it was read at.
type versionedRow interface {
	tableRow
	rowHead() rowHead
}

// saveRows adds the rows that are new and replaces the others, these first: they
// may give up what a new one takes.
func saveRows[T any, R versionedRow](s changeWriter, what string, items []T, toRow func(T) R) {
	var fresh, changed []R
	for _, item := range items {
		row := toRow(item)
		if row.rowHead().Version == 1 {
			fresh = append(fresh, row)
		} else {
			changed = append(changed, row)
		}
	}
	if len(changed) > 0 {
		s.replaceRows("saving "+describeRows(what, changed), typeOf[R](), reflect.ValueOf(changed))
	}
	if len(fresh) > 0 {
		s.insertRows("saving "+describeRows(what, fresh), typeOf[R](), reflect.ValueOf(fresh), "")
	}
}

// describeRows is what a caller is told was being saved.
func describeRows[R versionedRow](what string, rows []R) string {
	if len(rows) == 1 {
		return what + " " + rows[0].rowHead().ID
	}
	return fmt.Sprintf("%d %ss", len(rows), what)
}
