package sqlledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// For each column PostgreSQL is sent one array of the values of all rows, and
// unnests them. This file encodes the arrays in PostgreSQL's binary format
// (array_send in its source): a driver's type mapping costs several times as much
// for ten thousand rows.

// encodeArray encodes one column of rows, which is a slice of structs.
func (c column) encodeArray(rows reflect.Value) []byte {
	n := rows.Len()
	b := beginArray(c.kind, n, c.lengthOf(rows))
	for i := range n {
		b = c.appendElement(b, rows.Index(i).FieldByIndex(c.index))
	}
	return b
}

// lengthOf returns about how many bytes the elements of one column take: texts are
// mostly ids and names of one length.
func (c column) lengthOf(rows reflect.Value) int {
	switch n := rows.Len(); {
	case n == 0:
		return 0
	case c.kind == textKind, c.kind == bytesKind:
		return n * (lengthBytes + rows.Index(0).FieldByIndex(c.index).Len() + 1)
	case c.kind == boolKind:
		return n * (lengthBytes + 1)
	default:
		return n * (lengthBytes + 8)
	}
}

// beginArray encodes the header of an array of n elements, whose first index is 1, with
// room for about so many bytes of elements.
func beginArray(k columnKind, n, length int) []byte {
	b := make([]byte, 0, 20+length)
	dimensions, nulls := uint32(1), uint32(0)
	if n == 0 {
		dimensions = 0
	}
	if k == nullableKind {
		nulls = 1
	}
	b = binary.BigEndian.AppendUint32(b, dimensions)
	b = binary.BigEndian.AppendUint32(b, nulls)
	b = binary.BigEndian.AppendUint32(b, elementOID[k])
	if n == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n)) // chunks are small
	return binary.BigEndian.AppendUint32(b, 1)
}

// appendElement appends one element: its length, then its value.
func (c column) appendElement(b []byte, v reflect.Value) []byte {
	switch c.kind {
	case integerKind:
		return appendInteger(b, v.Int())
	case nullableKind:
		if v.IsNil() {
			return binary.BigEndian.AppendUint32(b, math.MaxUint32)
		}
		return appendInteger(b, v.Elem().Int())
	case textKind:
		return append(appendLength(b, v.Len()), v.String()...)
	case boolKind:
		b = appendLength(b, 1)
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case floatKind:
		return binary.BigEndian.AppendUint64(appendLength(b, 8), math.Float64bits(v.Float()))
	default:
		return append(appendLength(b, v.Len()), v.Bytes()...)
	}
}

func appendInteger(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(n)) // two's complement, as it is sent
}

func appendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) // no value is that long
}

// usualRow is how many bytes the values of a row seldom exceed.
const usualRow = 512

// encodeParameters encodes the values of one row, in one buffer; an update leaves out
// the columns that are written only when a row is created.
func (t *rowType) encodeParameters(row reflect.Value, update bool) [][]byte {
	args, b := make([][]byte, 0, len(t.columns)), make([]byte, 0, usualRow)
	for _, c := range t.columns {
		if update && c.createOnly {
			continue
		}
		field := row.FieldByIndex(c.index)
		if c.kind == nullableKind && field.IsNil() {
			args = append(args, nil)
			continue
		}
		from := len(b) + lengthBytes
		b = c.appendElement(b, field)
		args = append(args, b[from:len(b):len(b)])
	}
	return args
}

// lengthBytes is how many bytes before an element say how long it is.
const lengthBytes = 4

// textArray encodes strings that are not a column of rows.
func textArray(list []string) []byte {
	b := beginArray(textKind, len(list), 40*len(list))
	for _, s := range list {
		b = append(appendLength(b, len(s)), s...)
	}
	return b
}

// integerArray encodes numbers that are not a column of rows.
func integerArray(list []int64) []byte {
	b := beginArray(integerKind, len(list), 12*len(list))
	for _, n := range list {
		b = appendInteger(b, n)
	}
	return b
}

// encodeInteger encodes one number.
func encodeInteger(n int64) []byte { return appendInteger(nil, n)[4:] }

// decodeInteger is the reverse of encodeInteger.
func decodeInteger(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a number came in %d bytes", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil // two's complement, as it was sent
}

// scanRow sets the fields of a row from values in binary format, one for each
// column.
func (t *rowType) scanRow(values [][]byte, row reflect.Value) error {
	if len(values) != len(t.columns) {
		return fmt.Errorf("%d values came for %d columns", len(values), len(t.columns))
	}
	for i, c := range t.columns {
		if err := c.setField(row.FieldByIndex(c.index), values[i]); err != nil {
			return fmt.Errorf("reading column %s: %w", c.name, err)
		}
	}
	return nil
}

func (c column) setField(field reflect.Value, b []byte) error {
	switch c.kind {
	case textKind:
		field.SetString(string(b))
	case boolKind:
		field.SetBool(len(b) == 1 && b[0] == 1)
	case bytesKind:
		field.SetBytes(bytes.Clone(b))
	case integerKind, floatKind, nullableKind:
		if b == nil && c.kind == nullableKind {
			return nil // NULL
		}
		n, err := decodeInteger(b)
		if err != nil {
			return err
		}
		switch c.kind {
		case floatKind:
			field.SetFloat(math.Float64frombits(uint64(n))) // the same bits
		case nullableKind:
			field.Set(reflect.ValueOf(&n))
		default:
			field.SetInt(n)
		}
	}
	return nil
}
