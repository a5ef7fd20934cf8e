package sqlledger

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// The columns of a row type are read off its fields, once, so that both databases,
// gorm's queries and this package's statements agree on them.

// columnKind is the kind of value that a column holds.
type columnKind int

const (
	integerKind  columnKind = iota // int, int64
	nullableKind                   // *int64: NULL for nil
	textKind                       // string
	boolKind                       // bool
	floatKind                      // float64
	bytesKind                      // []byte, never NULL
)

// For each kind, the type of an element of PostgreSQL's arrays: its name and its
// number.
var (
	elementName = [...]string{"bigint", "bigint", "text", "boolean", "double precision", "bytea"}
	elementOID  = [...]uint32{pgtype.Int8OID, pgtype.Int8OID, pgtype.TextOID, pgtype.BoolOID, pgtype.Float8OID,
		pgtype.ByteaOID}
)

// column is one column of a row type.
type column struct {
	name       string
	index      []int // of its field, as reflect counts
	kind       columnKind
	createOnly bool // written with a new row, and left alone by updates
}

// tableRow is a row of a table.
type tableRow interface{ TableName() string }

// rowHead is what all rows with versions have. No field of a row is called
// CreatedAt: gorm would fill it with this machine's time.
type rowHead struct {
	ID      string `gorm:"column:id;primaryKey"`
	Version int    `gorm:"column:version"`
}

// nextVersion returns the head of the next version of a row.
func nextVersion(id string, version int) rowHead { return rowHead{ID: id, Version: version + 1} }

// rowType describes a type of rows: its table, its columns and the statements that
// write them.
type rowType struct {
	table      string
	columns    []column
	statements rowStatements
}

var rowTypes sync.Map // *rowType by reflect.Type

// typeOf returns the description of a type of rows. It panics when no column can
// hold the type of a field: row types are declared in this package alone.
func typeOf[R any]() *rowType {
	var row R
	key := reflect.TypeFor[R]()
	if known, ok := rowTypes.Load(key); ok {
		if t, ok := known.(*rowType); ok {
			return t
		}
	}
	t := &rowType{columns: columnsOf(key, nil)}
	if named, ok := any(row).(tableRow); ok {
		t.table = named.TableName() // the others are results of queries
	}
	t.statements = statementsOf(t)
	rowTypes.Store(key, t)
	return t
}

func columnsOf(t reflect.Type, at []int) []column {
	var list []column
	for i := range t.NumField() {
		field := t.Field(i)
		index := append(append([]int(nil), at...), i)
		tag := field.Tag.Get("gorm")
		name, named := strings.CutPrefix(tag, "column:")
		name, options, _ := strings.Cut(name, ";")
		switch {
		case tag == "embedded":
			list = append(list, columnsOf(field.Type, index)...)
		case named && !strings.Contains(options, "autoIncrement"):
			list = append(list, column{
				name: name, index: index, kind: kindOf(field.Type), createOnly: strings.Contains(options, "<-:create"),
			})
		}
	}
	return list
}

func kindOf(t reflect.Type) columnKind {
	switch t {
	case reflect.TypeFor[int](), reflect.TypeFor[int64]():
		return integerKind
	case reflect.TypeFor[*int64]():
		return nullableKind
	case reflect.TypeFor[string]():
		return textKind
	case reflect.TypeFor[bool]():
		return boolKind
	case reflect.TypeFor[float64]():
		return floatKind
	case reflect.TypeFor[[]byte]():
		return bytesKind
	default:
		panic(fmt.Sprintf("sqlledger: no column holds a %v", t))
	}
}
