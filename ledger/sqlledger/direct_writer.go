package sqlledger

import (
	"reflect"

	"github.com/forewarm/forewarm/ledger"
)

// directWriter writes to SQLite, one statement after the other.
type directWriter struct{ t *tx }

func (d directWriter) insertRows(doing string, rt *rowType, rows reflect.Value, conflict string) {
	for at := 0; at < rows.Len() && d.t.failure == nil; {
		n, text := 1, rt.statements.insertOne
		if rows.Len()-at >= manyRows {
			n, text = manyRows, rt.statements.insertMany
		}
		args := make([]any, 0, n*len(rt.columns))
		for i := range n {
			args = rt.appendArguments(args, rows.Index(at+i))
		}
		_, _ = d.t.execStatement(doing, withConflict(text, conflict), args...) // a failure makes the transaction fail
		at += n
	}
}

func (d directWriter) replaceRows(doing string, rt *rowType, rows reflect.Value) {
	for i := range rows.Len() {
		args := make([]any, 0, len(rt.columns)+1)
		var id string
		var version int64
		row := rows.Index(i)
		for _, c := range rt.columns {
			field := row.FieldByIndex(c.index)
			switch {
			case c.name == "id":
				id = field.String()
				continue
			case c.createOnly:
				continue
			case c.name == "version":
				version = field.Int()
			}
			args = append(args, field.Interface())
		}
		d.execStatement(doing, rt.statements.updateOne, ledger.ErrConflict, append(args, id, version-1)...)
	}
}

func (d directWriter) execStatement(doing, text string, unmet error, args ...any) {
	if d.t.failure != nil {
		return
	}
	n, err := d.t.execStatement(doing, text, args...)
	if err == nil && unmet != nil && n != 1 {
		_ = d.t.failWith(wrapError(doing, unmet))
	}
}

func (d directWriter) checkReferences(_, _ []string) {} // SQLite has foreign keys

func (d directWriter) flushChanges(commit bool) error {
	if d.t.failure != nil || !commit {
		return d.t.failure
	}
	return d.t.commit()
}

// appendArguments appends the values of a row to args.
func (t *rowType) appendArguments(args []any, row reflect.Value) []any {
	for _, c := range t.columns {
		args = append(args, row.FieldByIndex(c.index).Interface())
	}
	return args
}
