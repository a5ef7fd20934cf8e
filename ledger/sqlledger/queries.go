package sqlledger

import (
	"database/sql"
	"reflect"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// storedRow is a row that can be turned back into the value that it stores.
type storedRow[T any] interface{ toValue() (T, error) }

// listRows runs a query and returns its rows as values.
func listRows[R storedRow[T], T any](db *gorm.DB, doing string) ([]T, error) {
	var rows []R
	if err := db.Find(&rows).Error; err != nil {
		return nil, wrapError(doing, err)
	}
	all, err := rowValues(rows)
	return all, wrapError(doing, err)
}

// findRow runs a query for a single row, and returns false when there is none.
func findRow[R storedRow[T], T any](db *gorm.DB, doing string) (T, bool, error) {
	var none T
	found, err := listRows[R, T](db.Limit(1), doing)
	if err != nil || len(found) == 0 {
		return none, false, err
	}
	return found[0], true, nil
}

// readRow runs a query for a single row: ErrNotFound when there is none.
func readRow[R storedRow[T], T any](db *gorm.DB, doing string) (T, error) {
	found, ok, err := findRow[R, T](db, doing)
	if err == nil && !ok {
		err = wrapError(doing, ledger.ErrNotFound)
	}
	return found, err
}

// readOwnRow reads, by its id, a row that belongs to an organization.
func readOwnRow[R storedRow[T], T any](c *connection, s ledger.Scope, what, id string) (T, error) {
	return readRow[R, T](c.ownRows(s).Where("id = ?", id), "reading "+what+" "+id)
}

// rowValues returns the values that rows store.
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

// rowQuery is one of the queries that readTogether runs.
type rowQuery struct {
	doing string
	text  string
	args  []any
	add   func(values [][]byte) error // of PostgreSQL's binary format
	scan  func(rows *sql.Rows) error
}

// toStatement returns the query as a statement of a batch, on PostgreSQL.
func (q rowQuery) toStatement() statement {
	return statement{doing: q.doing, text: numberPlaceholders(q.text), args: encodeScalars(q.args), receive: q.add}
}

// queryRows queries all columns of a type of rows; rest is the statement from FROM
// on.
func queryRows[R any](doing string, rows *[]R, rest string, args ...any) rowQuery {
	return rowQuery{
		doing: doing, text: typeOf[R]().statements.query + rest, args: args, add: appendRows(rows),
		scan: func(from *sql.Rows) error { return scanRows(from, rows) },
	}
}

// scanRows appends what a query of all columns of a type of rows found. gorm would take
// several times as long.
func scanRows[R any](from *sql.Rows, to *[]R) error {
	t := typeOf[R]()
	fields := make([]any, len(t.columns))
	for from.Next() {
		var row R
		value := reflect.ValueOf(&row).Elem()
		for i, c := range t.columns {
			fields[i] = value.FieldByIndex(c.index).Addr().Interface()
		}
		if err := from.Scan(fields...); err != nil {
			return err
		}
		*to = append(*to, row)
	}
	return from.Err()
}

// appendRows returns a receiver that appends to rows each row that comes.
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
