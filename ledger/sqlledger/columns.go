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

// kind is what a column holds.
type kind int

const (
	whole   kind = iota // int, int64
	perhaps             // *int64: NULL for nil
	words               // string
	truth               // bool
	real                // float64
	blob                // []byte, never NULL
)

// Of each kind: the type of an element of PostgreSQL's arrays, by name and number.
var (
	elementName = [...]string{"bigint", "bigint", "text", "boolean", "double precision", "bytea"}
	elementOID  = [...]uint32{pgtype.Int8OID, pgtype.Int8OID, pgtype.TextOID, pgtype.BoolOID, pgtype.Float8OID,
		pgtype.ByteaOID}
)

// column is one of a row type's.
type column struct {
	name  string
	index []int // of its field, as reflect counts
	kind  kind
	once  bool // written when the row is made and never after by its type's updates
}

// tabled is a row of a table.
type tabled interface{ TableName() string }

// rowType is what is known of a type of rows, and the statements that write them.
type rowType struct {
	table   string
	columns []column
	texts   texts
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
	if named, ok := any(row).(tabled); ok {
		t.table = named.TableName() // others are results of queries
	}
	t.texts = textsOf(t)
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
				name: name, index: index, kind: kindOf(field.Type), once: strings.Contains(options, "<-:create"),
			})
		}
	}
	return list
}

func kindOf(t reflect.Type) kind {
	switch t {
	case reflect.TypeFor[int](), reflect.TypeFor[int64]():
		return whole
	case reflect.TypeFor[*int64]():
		return perhaps
	case reflect.TypeFor[string]():
		return words
	case reflect.TypeFor[bool]():
		return truth
	case reflect.TypeFor[float64]():
		return real
	case reflect.TypeFor[[]byte]():
		return blob
	default:
		panic(fmt.Sprintf("sqlledger: no column holds a %v", t))
	}
}
