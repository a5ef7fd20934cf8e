package sqlledger

import (
	"reflect"

	"gorm.io/gorm"
)

// reading is one of the queries that gather sends together.
type reading struct {
	doing string
	text  string
	args  []any
	add   func(values [][]byte) error // of PostgreSQL's binary format
	find  func(db *gorm.DB) error
}

// readRows reads all columns of a type of rows, which the rest of the statement
// names or makes.
func readRows[R any](doing string, rows *[]R, rest string, args ...any) reading {
	return reading{
		doing: doing, text: "SELECT " + typeOf[R]().list("%s") + " " + rest, args: args, add: into(rows),
		find: func(db *gorm.DB) error { return db.Scan(rows).Error },
	}
}

// gather runs queries: in one round trip within a transaction on PostgreSQL, one
// after the other elsewhere, where there is nobody to wait for or no hurry.
func (r *reader) gather(list ...reading) error {
	if r.session == nil {
		for _, one := range list {
			if err := one.find(r.query().Raw(one.text, one.args...)); err != nil {
				return wrap(one.doing, err)
			}
		}
		return nil
	}
	batch := make([]statement, len(list))
	for i, one := range list {
		batch[i] = statement{doing: one.doing, text: numbered(one.text), args: scalars(one.args), receive: one.add}
	}
	if err := r.batch(batch); err != nil {
		return r.spoil(err)
	}
	return nil
}

// values turns rows into what they were made from.
func values[R stored[T], T any](rows []R) ([]T, error) {
	list := make([]T, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = row.value(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// into appends what comes to rows.
func into[R any](rows *[]R) func(values [][]byte) error {
	t := typeOf[R]()
	return func(values [][]byte) error {
		var row R
		if err := t.scan(values, reflect.ValueOf(&row).Elem()); err != nil {
			return err
		}
		*rows = append(*rows, row)
		return nil
	}
}
