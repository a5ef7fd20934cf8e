package sqlledger

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// batchWriter collects statements, and sends them to PostgreSQL all at once.
type batchWriter struct {
	t    *tx
	list []statement
	sets []poolChange // new revisions
}

// maxSingleRows is how many rows are written one by one. Unnesting an array for
// each column has a price of its own: without it, one row was measured to cost the
// server half as much, since its statement is also planned only once.
const maxSingleRows = 3

// chunkSize is how many rows one statement writes: arrays of this size are small,
// and one statement more costs little.
const chunkSize = 2000

func (b *batchWriter) insertRows(doing string, t *rowType, rows reflect.Value, conflict string) {
	if rows.Len() <= maxSingleRows {
		text := withConflict(t.statements.insert, conflict)
		for i := range rows.Len() {
			b.list = append(b.list, statement{doing: doing, text: text, args: t.encodeParameters(rows.Index(i), false)})
		}
		return
	}
	text := withConflict(t.statements.unnest, conflict)
	b.eachChunk(rows, func(part reflect.Value) {
		b.list = append(b.list, statement{doing: doing, text: text, args: t.encodeColumns(part)})
	})
}

func (b *batchWriter) replaceRows(doing string, t *rowType, rows reflect.Value) {
	if rows.Len() <= maxSingleRows {
		for i := range rows.Len() {
			b.list = append(b.list, statement{
				doing: doing, text: t.statements.replace, unmet: ledger.ErrConflict,
				args: t.encodeParameters(rows.Index(i), true),
			})
		}
		return
	}
	b.eachChunk(rows, func(part reflect.Value) {
		b.list = append(b.list, statement{
			doing: doing, text: t.statements.update, unmet: ledger.ErrConflict,
			args: append(t.encodeColumns(part), encodeInteger(int64(part.Len()))),
		})
	})
}

func (b *batchWriter) eachChunk(rows reflect.Value, each func(part reflect.Value)) {
	for at := 0; at < rows.Len(); at += chunkSize {
		each(rows.Slice(at, min(at+chunkSize, rows.Len())))
	}
}

func (b *batchWriter) execStatement(doing, text string, unmet error, args ...any) {
	values := encodeScalars(args)
	if unmet == nil {
		text = numberPlaceholders(text)
	} else {
		text, values = checkRows(text), append(values, encodeInteger(1))
	}
	b.list = append(b.list, statement{doing: doing, text: text, args: values, unmet: unmet})
}

// encodeScalars encodes the parameters of a statement.
func encodeScalars(args []any) [][]byte {
	values := make([][]byte, len(args), len(args)+1)
	for i, arg := range args {
		values[i] = encodeScalar(arg)
	}
	return values
}

// encodeScalar encodes one parameter in PostgreSQL's binary format.
func encodeScalar(v any) []byte {
	switch v := v.(type) {
	case int64:
		return encodeInteger(v)
	case string:
		return []byte(v)
	case float64:
		return encodeInteger(int64(math.Float64bits(v))) // the same bits
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	default:
		panic(fmt.Sprintf("sqlledger: no statement takes a %T", v))
	}
}

// errNoReference is what a foreign key would say.
var errNoReference = errors.New("their organization or pool does not exist")

// checkReferences looks for the rows that the transaction does not hold. Nobody
// deletes organizations or pools, so what exists now will exist at the commit.
func (b *batchWriter) checkReferences(organizations, pools []string) {
	known := func(id string) bool { return b.t.held[id] }
	organizations, pools = slices.DeleteFunc(organizations, known), slices.DeleteFunc(pools, known)
	if len(organizations)+len(pools) == 0 {
		return
	}
	b.list = append(b.list, statement{
		doing: "looking for what rows refer to", unmet: errNoReference,
		text: `SELECT 1 / ((SELECT count(*) FROM organizations WHERE id = ANY($1::text[])) = $2
			AND (SELECT count(*) FROM pools WHERE id = ANY($3::text[])) = $4)::int`,
		args: [][]byte{
			textArray(organizations), encodeInteger(int64(len(organizations))), textArray(pools),
			encodeInteger(int64(len(pools))),
		},
	})
}

func (b *batchWriter) flushChanges(commit bool) error {
	session := b.t.session
	b.addRevisions(commit)
	if commit && !session.over && (session.begun || len(b.list) > 0) {
		b.list = append(b.list, commitTransaction)
	}
	if len(b.list) > 0 {
		b.t.writes++
		if err := b.t.sendBatch(b.list); err != nil {
			return b.t.failWith(err)
		}
	}
	session.over = session.over || commit
	return nil
}

// addRevisions adds the statements that set revisions, and, before all that is written,
// those that check what is remembered: in the statement that sets a revision, where that is
// all there is to set. A transaction that ends without having written anything is checked too: what its
// verbs found may not be so any more.
func (b *batchWriter) addRevisions(ends bool) {
	a := b.t.assumptions
	if a != nil && len(b.sets) == 1 && b.sets[0].poolID == a.pool {
		b.list = append(a.assumeAndSet(b.sets[0]), b.list...)
		b.t.assumptions, b.sets = nil, nil
		return
	}
	b.list = append(b.list, setRevisions(b.sets)...)
	b.sets = nil
	if a != nil && (ends || len(b.list) > 0) {
		b.list, b.t.assumptions = append(a.listed(), b.list...), nil
	}
}

// encodeColumns encodes one array for each column.
func (t *rowType) encodeColumns(rows reflect.Value) [][]byte {
	args := make([][]byte, len(t.columns), len(t.columns)+1)
	for i, c := range t.columns {
		args[i] = c.encodeArray(rows)
	}
	return args
}
