package txn

import (
	"cmp"
	"iter"
	"slices"
)

// rowTable holds rows in the order of their ids. The rows are never changed in
// place: whoever got one may keep it.
type rowTable[T any] struct {
	Rows []*T
	id   func(*T) string
}

func newRowTable[T any](rows []T, id func(*T) string) rowTable[T] {
	t := rowTable[T]{id: id, Rows: make([]*T, len(rows))}
	for i := range rows {
		t.Rows[i] = &rows[i]
	}
	slices.SortFunc(t.Rows, func(a, b *T) int { return cmp.Compare(id(a), id(b)) })
	return t
}

func (t *rowTable[T]) indexOf(id string) (int, bool) {
	// Ids grow with time, so most new rows come last.
	if n := len(t.Rows); n == 0 || t.id(t.Rows[n-1]) < id {
		return n, false
	}
	return slices.BinarySearchFunc(t.Rows, id, func(row *T, id string) int { return cmp.Compare(t.id(row), id) })
}

func (t *rowTable[T]) getRow(id string) (T, bool) {
	if i, ok := t.indexOf(id); ok {
		return *t.Rows[i], true
	}
	var none T
	return none, false
}

func (t *rowTable[T]) setRow(row T) {
	i, ok := t.indexOf(t.id(&row))
	if ok {
		t.Rows[i] = &row
		return
	}
	t.Rows = slices.Insert(t.Rows, i, &row)
}

func (t *rowTable[T]) removeRow(id string) {
	if i, ok := t.indexOf(id); ok {
		t.Rows = slices.Delete(t.Rows, i, i+1)
	}
}

// All yields the rows in the order of their ids. Rows may be replaced meanwhile,
// not added or removed.
func (t *rowTable[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, row := range t.Rows {
			if !yield(*row) {
				return
			}
		}
	}
}
