package sqlledger

import (
	"reflect"

	"gorm.io/gorm"
)

// rowQuery is one of the queries that gather sends together.
type rowQuery struct {
	doing string
	text  string
	args  []any
	add   func(values [][]byte) error // of PostgreSQL's binary format
	find  func(db *gorm.DB) error
}

// queryRows reads all columns of a type of rows, which the rest of the statement
// names or makes.
func queryRows[R any](doing string, rows *[]R, rest string, args ...any) rowQuery {
	return rowQuery{
		doing: doing, text: "SELECT " + typeOf[R]().columnList("%s") + " " + rest, args: args, add: appendRows(rows),
		find: func(db *gorm.DB) error { return db.Scan(rows).Error },
	}
}

// readTogether runs queries: in one round trip within a transaction on PostgreSQL, one
// after the other elsewhere, where there is nobody to wait for or no hurry.
func (r *reader) readTogether(list ...rowQuery) error {
	if r.session == nil {
		for _, one := range list {
			if err := one.find(r.newQuery().Raw(one.text, one.args...)); err != nil {
				return wrapError(one.doing, err)
			}
		}
		return nil
	}
	batch := make([]statement, len(list))
	for i, one := range list {
		batch[i] = statement{doing: one.doing, text: numberPlaceholders(one.text), args: encodeScalars(one.args), receive: one.add}
	}
	if err := r.sendBatch(batch); err != nil {
		return r.failWith(err)
	}
	return nil
}

// rowValues turns rows into what they were made from.
func rowValues[R storedRow[T], T any](rows []R) ([]T, error) {
	list := make([]T, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = row.toValue(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// appendRows appends what comes to rows.
func appendRows[R any](rows *[]R) func(values [][]byte) error {
	t := typeOf[R]()
	return func(values [][]byte) error {
		var row R
		if err := t.scanRow(values, reflect.ValueOf(&row).Elem()); err != nil {
			return err
		}
		*rows = append(*rows, row)
		return nil
	}
}
