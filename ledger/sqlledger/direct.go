package sqlledger

import (
	"reflect"

	"github.com/forewarm/forewarm/ledger"
)

// direct writes to SQLite, statement by statement.
type direct struct{ t *tx }

func (d direct) insert(doing string, rt *rowType, rows reflect.Value, conflict string) {
	for at := 0; at < rows.Len() && d.t.err == nil; {
		n, text := 1, rt.texts.insertOne
		if rows.Len()-at >= manyRows {
			n, text = manyRows, rt.texts.insertMany
		}
		args := make([]any, 0, n*len(rt.columns))
		for i := range n {
			args = rt.arguments(args, rows.Index(at+i))
		}
		_, _ = d.t.exec(doing, text+" "+conflict, args...) // spoils the transaction
		at += n
	}
}

func (d direct) replace(doing string, rt *rowType, rows reflect.Value) {
	for i := range rows.Len() {
		var args []any
		var id string
		var version int64
		row := rows.Index(i)
		for _, c := range rt.columns {
			field := row.FieldByIndex(c.index)
			switch {
			case c.name == "id":
				id = field.String()
				continue
			case c.once:
				continue
			case c.name == "version":
				version = field.Int()
			}
			args = append(args, field.Interface())
		}
		d.exec(doing, rt.texts.updateOne, ledger.ErrConflict, append(args, id, version-1)...)
	}
}

func (d direct) exec(doing, text string, unmet error, args ...any) {
	if d.t.err != nil {
		return
	}
	n, err := d.t.exec(doing, text, args...)
	if err == nil && unmet != nil && n != 1 {
		_ = d.t.spoil(wrap(doing, unmet))
	}
}

func (d direct) refer(_, _ []string) {} // SQLite has the keys

func (d direct) flush(commit bool) error {
	if d.t.err != nil || !commit {
		return d.t.err
	}
	return d.t.commit()
}

// arguments adds a row's values to args.
func (t *rowType) arguments(args []any, row reflect.Value) []any {
	for _, c := range t.columns {
		args = append(args, row.FieldByIndex(c.index).Interface())
	}
	return args
}
