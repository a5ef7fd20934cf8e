package sqlledger

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// oddRow has a column of every kind.
type oddRow struct {
	Head  rowHead `gorm:"embedded"`
	Seq   int64   `gorm:"column:seq;primaryKey;autoIncrement"`
	Wide  int64   `gorm:"column:wide"`
	Until *int64  `gorm:"column:until"`
	Name  string  `gorm:"column:name"`
	Yes   bool    `gorm:"column:yes"`
	Share float64 `gorm:"column:share"`
	Body  []byte  `gorm:"column:body"`
	First int64   `gorm:"column:first;<-:create"`
}

func (oddRow) TableName() string { return "odd" }

func TestColumnsAreReadOffFields(t *testing.T) {
	t.Parallel()
	rt := typeOf[oddRow]()
	require.Equal(t, "id, version, wide, until, name, yes, share, body, first", rt.columnList("%s"))
	require.Same(t, rt, typeOf[oddRow]())
	require.Equal(t,
		"UPDATE odd SET version = ?, wide = ?, until = ?, name = ?, yes = ?, share = ?, body = ? WHERE id = ? AND "+
			"version = ?",
		rt.statements.updateOne, "the id and what is written once stay")
	require.Contains(t, rt.statements.unnest,
		"$4::bigint[], $5::text[], $6::boolean[], $7::double precision[], $8::bytea[]")
}

// TestArrays compares with what "SELECT encode(array_send(ARRAY[1, -2]), 'hex')"
// and its like say.
func TestArrays(t *testing.T) {
	t.Parallel()
	until := int64(7)
	rows := reflect.ValueOf([]oddRow{{Wide: 1, Until: &until, Name: "a"}, {Wide: -2, Name: ""}})
	rt := typeOf[oddRow]()
	for i, want := range map[int]string{
		2: "00000001" + "00000000" + "00000014" + "00000002" + "00000001" + "00000008" + "0000000000000001" +
			"00000008" + "fffffffffffffffe",
		3: "00000001" + "00000001" + "00000014" + "00000002" + "00000001" + "00000008" + "0000000000000007" +
			"ffffffff",
		4: "00000001" + "00000000" + "00000019" + "00000002" + "00000001" + "00000001" + "61" + "00000000",
	} {
		require.Equal(t, want, hex.EncodeToString(rt.columns[i].encodeArray(rows)), rt.columns[i].name)
	}
	require.Equal(t, "00000000"+"00000000"+"00000019", hex.EncodeToString(textArray(nil)))
}

// TestValuesComeBack: scanRow reads what encodeParameters wrote.
func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	const before = 5*4 + 4 // the array's head, and the length of its one element
	rapid.Check(t, func(t *rapid.T) {
		until := rapid.Int64().Draw(t, "until")
		row := oddRow{
			Head: rowHead{ID: rapid.String().Draw(t, "id"), Version: rapid.Int().Draw(t, "version")},
			Wide: rapid.Int64().Draw(t, "wide"), Until: &until, Name: rapid.String().Draw(t, "name"),
			Yes: rapid.Bool().Draw(t, "yes"), Share: rapid.Float64().Draw(t, "share"),
			Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"), First: rapid.Int64().Draw(t, "first"),
		}
		rt := typeOf[oddRow]()
		var values [][]byte
		for _, array := range rt.encodeColumns(reflect.ValueOf([]oddRow{row})) {
			values = append(values, array[before:])
		}
		var back oddRow
		require.NoError(t, rt.scanRow(values, reflect.ValueOf(&back).Elem()))
		require.Equal(t, row, back)
	})
	var back oddRow
	missing := [][]byte{[]byte("a"), encodeInteger(1), encodeInteger(2), nil, []byte(""), {1}, encodeInteger(0), {},
		encodeInteger(3)}
	require.NoError(t, typeOf[oddRow]().scanRow(missing, reflect.ValueOf(&back).Elem()))
	require.Nil(t, back.Until, "NULL")
	missing[2] = nil
	require.ErrorContains(t, typeOf[oddRow]().scanRow(missing, reflect.ValueOf(&back).Elem()), "wide")
	require.Error(t, typeOf[oddRow]().scanRow(nil, reflect.ValueOf(&back).Elem()))
}
