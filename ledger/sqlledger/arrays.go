package sqlledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// PostgreSQL is sent one array for each column of the rows to write, and unnests
// them. The arrays are put together here, in its binary format (array_send in
// its source), since going through a driver's type mapping costs several times
// as much for ten thousand rows.

// array holds the values of one column of rows, which is a slice of structs.
func (c column) array(rows reflect.Value) []byte {
	b := arrayHead(c.kind, rows.Len())
	for i := range rows.Len() {
		b = c.append(b, rows.Index(i).FieldByIndex(c.index))
	}
	return b
}

// arrayHead begins an array of n elements, counted from 1.
func arrayHead(k kind, n int) []byte {
	b := make([]byte, 0, 20+24*n)
	dimensions, nulls := uint32(1), uint32(0)
	if n == 0 {
		dimensions = 0
	}
	if k == perhaps {
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

// append adds one element: its length, then its value.
func (c column) append(b []byte, v reflect.Value) []byte {
	switch c.kind {
	case whole:
		return appendWhole(b, v.Int())
	case perhaps:
		if v.IsNil() {
			return binary.BigEndian.AppendUint32(b, math.MaxUint32)
		}
		return appendWhole(b, v.Elem().Int())
	case words:
		return append(appendLength(b, v.Len()), v.String()...)
	case truth:
		b = appendLength(b, 1)
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case real:
		return binary.BigEndian.AppendUint64(appendLength(b, 8), math.Float64bits(v.Float()))
	default:
		return append(appendLength(b, v.Len()), v.Bytes()...)
	}
}

func appendWhole(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(n)) // two's complement, as it is sent
}

func appendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) // no value is that long
}

// parameters are one row's values; again leaves out those that are written once.
func (t *rowType) parameters(row reflect.Value, again bool) [][]byte {
	args := make([][]byte, 0, len(t.columns))
	for _, c := range t.columns {
		if again && c.once {
			continue
		}
		field := row.FieldByIndex(c.index)
		if c.kind == perhaps && field.IsNil() {
			args = append(args, nil)
			continue
		}
		args = append(args, c.append(nil, field)[4:])
	}
	return args
}

// wordArray is an array of strings that are no column of rows.
func wordArray(list []string) []byte {
	b := arrayHead(words, len(list))
	for _, s := range list {
		b = append(appendLength(b, len(s)), s...)
	}
	return b
}

// wholeArray is an array of numbers that are no column of rows.
func wholeArray(list []int64) []byte {
	b := arrayHead(whole, len(list))
	for _, n := range list {
		b = appendWhole(b, n)
	}
	return b
}

// wholeValue is one number.
func wholeValue(n int64) []byte { return appendWhole(nil, n)[4:] }

// readWhole is the reverse of wholeValue.
func readWhole(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a number came in %d bytes", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil // two's complement, as it was sent
}

// scan sets a row's fields from values in binary format, one for each column.
func (t *rowType) scan(values [][]byte, row reflect.Value) error {
	if len(values) != len(t.columns) {
		return fmt.Errorf("%d values came for %d columns", len(values), len(t.columns))
	}
	for i, c := range t.columns {
		if err := c.set(row.FieldByIndex(c.index), values[i]); err != nil {
			return fmt.Errorf("reading column %s: %w", c.name, err)
		}
	}
	return nil
}

func (c column) set(field reflect.Value, b []byte) error {
	switch c.kind {
	case words:
		field.SetString(string(b))
	case truth:
		field.SetBool(len(b) == 1 && b[0] == 1)
	case blob:
		field.SetBytes(bytes.Clone(b))
	case whole, real, perhaps:
		if b == nil && c.kind == perhaps {
			return nil // NULL
		}
		n, err := readWhole(b)
		if err != nil {
			return err
		}
		switch c.kind {
		case real:
			field.SetFloat(math.Float64frombits(uint64(n))) // the same bits
		case perhaps:
			field.Set(reflect.ValueOf(&n))
		default:
			field.SetInt(n)
		}
	}
	return nil
}
