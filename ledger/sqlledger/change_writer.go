package sqlledger

import (
	"fmt"
	"reflect"

	"github.com/forewarm/forewarm/ledger"
)

// changeWriter writes the parts of a change in order. A failure makes the
// transaction fail, and nothing is written after it.
type changeWriter interface {
	// insertRows adds rows, a slice of the type that t describes. conflict is the
	// clause for a row that exists already; empty: that is an error.
	insertRows(doing string, t *rowType, rows reflect.Value, conflict string)
	// replaceRows writes each row over the version before its own: ErrConflict if
	// that is not the current version of one of them.
	replaceRows(doing string, t *rowType, rows reflect.Value)
	// execStatement runs a statement. If unmet is not nil, it is the error when the
	// statement does not change exactly one row.
	execStatement(doing, text string, unmet error, args ...any)
	// setRevisions sets the revisions of pools, and lists the ids of what was written
	// to reach them: ErrNotFound if there is no such pool.
	setRevisions(changes []poolChange)
	// wakeTasks makes keyed rows run at a time, if they would run later. Each key
	// comes once.
	wakeTasks(all []ledger.Wakeup)
	// checkReferences names what the rows that follow refer to without a foreign
	// key on PostgreSQL. It fails if one of them does not exist.
	checkReferences(organizations, pools []string)
	// flushChanges ends the writing and, with commit, the transaction.
	flushChanges(commit bool) error
}

// addRows adds rows that have no versions.
func addRows[R tableRow](s changeWriter, what string, rows []R, conflict string) {
	if len(rows) > 0 {
		s.insertRows("adding "+what, typeOf[R](), reflect.ValueOf(rows), conflict)
	}
}

// versionedRow is a row that may be written only over the version at which it was
// read.
type versionedRow interface {
	tableRow
	rowHead() rowHead
}

// saveRows replaces the rows that exist and adds the new ones, in this order: a row
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

// describeRows says in an error what was being saved.
func describeRows[R versionedRow](what string, rows []R) string {
	if len(rows) == 1 {
		return what + " " + rows[0].rowHead().ID
	}
	return fmt.Sprintf("%d %ss", len(rows), what)
}
