package sqlledger

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// A row type's columns are read off its fields once, so that both databases,
// gorm's queries and the statements made here agree on them.

// columnKind is what a column holds.
type columnKind int

const (
	integerKind  columnKind = iota // int, int64
	nullableKind                   // *int64: NULL for nil
	textKind                       // string
	boolKind                       // bool
	floatKind                      // float64
	bytesKind                      // []byte, never NULL
)

// Of each kind: the type of an element of PostgreSQL's arrays, by name and number.
var (
	elementName = [...]string{"bigint", "bigint", "text", "boolean", "double precision", "bytea"}
	elementOID  = [...]uint32{pgtype.Int8OID, pgtype.Int8OID, pgtype.TextOID, pgtype.BoolOID, pgtype.Float8OID,
		pgtype.ByteaOID}
)

// column is one of a row type's.
type column struct {
	name       string
	index      []int // of its field, as reflect counts
	kind       columnKind
	createOnly bool // written when the row is made and never after by its type's updates
}

// tableRow is a row of a table.
type tableRow interface{ TableName() string }

// rowHead is what rows that change have in common. Fields of rows are never called
// CreatedAt: gorm fills those with the machine's time.
type rowHead struct {
	ID      string `gorm:"column:id;primaryKey"`
	Version int    `gorm:"column:version"`
}

// nextVersion is the head of the row's next version.
func nextVersion(id string, version int) rowHead { return rowHead{ID: id, Version: version + 1} }

// rowType is what is known of a type of rows, and the statements that write them.
type rowType struct {
	table      string
	columns    []column
	statements rowStatements
}

var rowTypes sync.Map // *rowType by reflect.Type

// typeOf describes a type of rows. It panics when a field has a type that no
// column has: rows are this package's own.
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
		t.table = named.TableName() // others are results of queries
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
