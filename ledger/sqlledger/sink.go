package sqlledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/ledger"
)

// sink is where a change is written to, in order. What fails spoils the
// transaction; nothing after it is written.
type sink interface {
	// insert adds rows, a slice of t's. conflict is what becomes of one that is
	// there already; empty: it is an error.
	insert(doing string, t *rowType, rows reflect.Value, conflict string)
	// replace writes rows over the versions before theirs: ErrConflict if one of
	// them is not the current one.
	replace(doing string, t *rowType, rows reflect.Value)
	// exec runs a statement. If unmet is not nil it is what a statement means that
	// does not change exactly one row.
	exec(doing, text string, unmet error, args ...any)
	// refer says what the rows that follow refer to without a foreign key on
	// PostgreSQL: it must be there.
	refer(organizations, pools []string)
	// flush ends the writing, and with commit the transaction.
	flush(commit bool) error
}

// insertRows adds rows that have no versions.
func insertRows[R tabled](s sink, what string, rows []R, conflict string) {
	if len(rows) > 0 {
		s.insert("adding "+what, typeOf[R](), reflect.ValueOf(rows), conflict)
	}
}

// versionedRow is a row that may only be written over the version it was read at.
type versionedRow interface {
	tabled
	identity() head
}

// saveRows adds the rows that are new and replaces the others, these first: they
// may give up what a new one takes.
func saveRows[T any, R versionedRow](s sink, what string, items []T, toRow func(T) R) {
	var fresh, changed []R
	for _, item := range items {
		row := toRow(item)
		if row.identity().Version == 1 {
			fresh = append(fresh, row)
		} else {
			changed = append(changed, row)
		}
	}
	if len(changed) > 0 {
		s.replace("saving "+named(what, changed), typeOf[R](), reflect.ValueOf(changed))
	}
	if len(fresh) > 0 {
		s.insert("saving "+named(what, fresh), typeOf[R](), reflect.ValueOf(fresh), "")
	}
}

// named is what a caller is told was being saved.
func named[R versionedRow](what string, rows []R) string {
	if len(rows) == 1 {
		return what + " " + rows[0].identity().ID
	}
	return fmt.Sprintf("%d %ss", len(rows), what)
}

// direct writes to SQLite, statement by statement.
type direct struct{ t *tx }

func (d direct) insert(doing string, rt *rowType, rows reflect.Value, conflict string) {
	for at := 0; at < rows.Len() && d.t.err == nil; {
		n, text := 1, rt.texts.insertOne
		if rows.Len()-at >= manyRows {
			n, text = manyRows, rt.texts.insertMany
		}
		args := make([]any, 0, n*len(rt.columns))
		for i := range n {
			args = rt.arguments(args, rows.Index(at+i))
		}
		_, _ = d.t.exec(doing, text+" "+conflict, args...) // spoils the transaction
		at += n
	}
}

func (d direct) replace(doing string, rt *rowType, rows reflect.Value) {
	for i := range rows.Len() {
		var args []any
		var id string
		var version int64
		row := rows.Index(i)
		for _, c := range rt.columns {
			field := row.FieldByIndex(c.index)
			switch {
			case c.name == "id":
				id = field.String()
				continue
			case c.once:
				continue
			case c.name == "version":
				version = field.Int()
			}
			args = append(args, field.Interface())
		}
		d.exec(doing, rt.texts.updateOne, ledger.ErrConflict, append(args, id, version-1)...)
	}
}

func (d direct) exec(doing, text string, unmet error, args ...any) {
	if d.t.err != nil {
		return
	}
	n, err := d.t.exec(doing, text, args...)
	if err == nil && unmet != nil && n != 1 {
		_ = d.t.spoil(wrap(doing, unmet))
	}
}

func (d direct) refer(_, _ []string) {} // SQLite has the keys

func (d direct) flush(commit bool) error {
	if d.t.err != nil || !commit {
		return d.t.err
	}
	return d.t.commit()
}

// arguments adds a row's values to args.
func (t *rowType) arguments(args []any, row reflect.Value) []any {
	for _, c := range t.columns {
		args = append(args, row.FieldByIndex(c.index).Interface())
	}
	return args
}

// batched collects statements for PostgreSQL, which is sent all of them at once.
type batched struct {
	t    *tx
	list []statement
}

// chunk is how many rows one statement takes: arrays of this size are small, and
// a statement more costs little.
const chunk = 2000

func (b *batched) insert(doing string, t *rowType, rows reflect.Value, conflict string) {
	text := strings.TrimSuffix(t.texts.unnest+" "+conflict, " ")
	b.chunks(rows, func(part reflect.Value) {
		b.list = append(b.list, statement{doing: doing, text: text, args: t.asArrays(part)})
	})
}

func (b *batched) replace(doing string, t *rowType, rows reflect.Value) {
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
	values := make([][]byte, len(args), len(args)+1)
	for i, arg := range args {
		values[i] = scalar(arg)
	}
	if unmet != nil {
		text = "WITH written AS (" + text + " RETURNING 1) " + fmt.Sprintf(condition, fmt.Sprintf("$%d", len(args)+1))
		values = append(values, wholeValue(1))
	}
	b.list = append(b.list, statement{doing: doing, text: text, args: values, unmet: unmet})
}

// scalar is a parameter of exec in PostgreSQL's binary format.
func scalar(v any) []byte {
	switch v := v.(type) {
	case int64:
		return wholeValue(v)
	case string:
		return []byte(v)
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
		doing: "saving bookings", unmet: errOrphan,
		text: `SELECT 1 / ((SELECT count(*) FROM organizations WHERE id = ANY($1::text[])) = $2
			AND (SELECT count(*) FROM pools WHERE id = ANY($3::text[])) = $4)::int`,
		args: [][]byte{
			wordArray(organizations), wholeValue(int64(len(organizations))), wordArray(pools), wholeValue(int64(len(pools))),
		},
	})
}

func (b *batched) flush(commit bool) error {
	session := b.t.session
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
