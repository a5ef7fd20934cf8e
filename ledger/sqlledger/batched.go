package sqlledger

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// batched collects statements for PostgreSQL, which is sent all of them at once.
type batched struct {
	t    *tx
	list []statement
}

// few is how many rows are written one by one. Unnesting an array for each column
// has a price of its own: one row was measured to cost the server half as much
// without it, since its statement is also planned only once.
const few = 3

// chunk is how many rows one statement takes: arrays of this size are small, and
// a statement more costs little.
const chunk = 2000

func (b *batched) insert(doing string, t *rowType, rows reflect.Value, conflict string) {
	if rows.Len() <= few {
		text := strings.TrimSuffix(t.texts.insert+" "+conflict, " ")
		for i := range rows.Len() {
			b.list = append(b.list, statement{doing: doing, text: text, args: t.parameters(rows.Index(i), false)})
		}
		return
	}
	text := strings.TrimSuffix(t.texts.unnest+" "+conflict, " ")
	b.chunks(rows, func(part reflect.Value) {
		b.list = append(b.list, statement{doing: doing, text: text, args: t.asArrays(part)})
	})
}

func (b *batched) replace(doing string, t *rowType, rows reflect.Value) {
	if rows.Len() <= few {
		for i := range rows.Len() {
			b.list = append(b.list, statement{
				doing: doing, text: t.texts.replace, unmet: ledger.ErrConflict, args: t.parameters(rows.Index(i), true),
			})
		}
		return
	}
	b.chunks(rows, func(part reflect.Value) {
		b.list = append(b.list, statement{
			doing: doing, text: t.texts.update, unmet: ledger.ErrConflict,
			args: append(t.asArrays(part), wholeValue(int64(part.Len()))),
		})
	})
}

func (b *batched) chunks(rows reflect.Value, each func(part reflect.Value)) {
	for at := 0; at < rows.Len(); at += chunk {
		each(rows.Slice(at, min(at+chunk, rows.Len())))
	}
}

func (b *batched) exec(doing, text string, unmet error, args ...any) {
	text = numbered(text)
	values := scalars(args)
	if unmet != nil {
		text = "WITH written AS (" + text + " RETURNING 1) " + fmt.Sprintf(condition, fmt.Sprintf("$%d", len(args)+1))
		values = append(values, wholeValue(1))
	}
	b.list = append(b.list, statement{doing: doing, text: text, args: values, unmet: unmet})
}

// scalars are a statement's parameters.
func scalars(args []any) [][]byte {
	values := make([][]byte, len(args), len(args)+1)
	for i, arg := range args {
		values[i] = scalar(arg)
	}
	return values
}

// scalar is a parameter of a statement in PostgreSQL's binary format.
func scalar(v any) []byte {
	switch v := v.(type) {
	case int64:
		return wholeValue(v)
	case string:
		return []byte(v)
	case float64:
		return wholeValue(int64(math.Float64bits(v))) // the same bits
	case bool:
		if v {
			return []byte{1}
		}
		return []byte{0}
	default:
		panic(fmt.Sprintf("sqlledger: no statement takes a %T", v))
	}
}

// errOrphan is what a foreign key would say.
var errOrphan = errors.New("their organization or pool does not exist")

// refer asks for what the transaction does not hold; nobody deletes the others.
func (b *batched) refer(organizations, pools []string) {
	known := func(id string) bool { return b.t.held[id] }
	organizations, pools = slices.DeleteFunc(organizations, known), slices.DeleteFunc(pools, known)
	if len(organizations)+len(pools) == 0 {
		return
	}
	b.list = append(b.list, statement{
		doing: "looking for what rows refer to", unmet: errOrphan,
		text: `SELECT 1 / ((SELECT count(*) FROM organizations WHERE id = ANY($1::text[])) = $2
			AND (SELECT count(*) FROM pools WHERE id = ANY($3::text[])) = $4)::int`,
		args: [][]byte{
			wordArray(organizations), wholeValue(int64(len(organizations))), wordArray(pools),
			wholeValue(int64(len(pools))),
		},
	})
}

func (b *batched) flush(commit bool) error {
	session := b.t.session
	if len(b.list) > 0 && b.t.assumed != nil {
		b.list, b.t.assumed = append(b.t.assumed, b.list...), nil
	}
	if commit && !session.over && (session.begun || len(b.list) > 0) {
		b.list = append(b.list, commitTransaction)
	}
	if len(b.list) > 0 {
		b.t.writes++
		if err := b.t.batch(b.list); err != nil {
			return b.t.spoil(err)
		}
	}
	session.over = session.over || commit
	return nil
}

// asArrays is one array for each column.
func (t *rowType) asArrays(rows reflect.Value) [][]byte {
	args := make([][]byte, len(t.columns), len(t.columns)+1)
	for i, c := range t.columns {
		args[i] = c.array(rows)
	}
	return args
}
