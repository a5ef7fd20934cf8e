package sqlledger

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// rowStatements are the statements that write rows of one type. They are constant,
// so that both databases can keep them prepared.
type rowStatements struct {
	insertOne  string // SQLite: one row
	insertMany string // SQLite: manyRows rows
	updateOne  string // SQLite: one row over the version before; the id and version come last
	insert     string // PostgreSQL: one row; the clause for a conflict follows
	replace    string // PostgreSQL: one row over the version before
	unnest     string // PostgreSQL: rows from one array for each column; the clause for a conflict follows
	lock       string // PostgreSQL: locks rows by an array of ids, in their order
	update     string // PostgreSQL: rows over the version before; the last parameter is how many
	query      string // both: all columns; what follows from FROM on
}

// manyRows is how many rows SQLite is sent at once. For each parameter its driver
// looks through all of them, so with more rows a statement soon costs more than it
// saves: 8 was measured to be best (BenchmarkSave).
const manyRows = 8

func statementsOf(t *rowType) rowStatements {
	row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ") + ")"
	into := "INSERT INTO " + t.table + " (" + t.columnList("%s") + ") "
	changed := t.filterColumns(func(c column) bool { return c.name != "id" && !c.createOnly })
	written := t.filterColumns(func(c column) bool { return !c.createOnly })
	// Parameters are numbered in the order of the columns.
	return rowStatements{
		insertOne:  into + "VALUES " + row,
		insertMany: into + "VALUES " + row + strings.Repeat(", "+row, manyRows-1),
		updateOne:  "UPDATE " + t.table + " SET " + changed.columnList("%s = ?") + " WHERE id = ? AND version = ?",
		insert:     into + "VALUES " + numberPlaceholders(row),
		replace: "WITH written AS (UPDATE " + t.table + " SET " + written.numberedAssignments() +
			" RETURNING 1) " + fmt.Sprintf(condition, "1"),
		unnest: into + "SELECT " + t.columnList("u.%s") + " FROM unnest(" + t.arrayParameters() +
			") WITH ORDINALITY AS u (" + t.columnList("%s") + ", place) ORDER BY u.place",
		lock: "SELECT " + t.columnList("%s") + " FROM " + t.table +
			" WHERE id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE",
		update: "WITH written AS (UPDATE " + t.table + " AS t SET " + changed.columnList("%[1]s = u.%[1]s") +
			" FROM unnest(" + t.arrayParameters() + ") AS u (" + t.columnList("%s") +
			") WHERE t.id = u.id AND t.version = u.version - 1 RETURNING 1) " +
			fmt.Sprintf(condition, "$"+strconv.Itoa(len(t.columns)+1)),
		query: "SELECT " + t.columnList("%s") + " ",
	}
}

// columnList lists the columns, each in the given format.
func (t *rowType) columnList(format string) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = fmt.Sprintf(format, c.name)
	}
	return strings.Join(names, ", ")
}

// filterColumns returns the row type with some of its columns.
func (t *rowType) filterColumns(keep func(c column) bool) *rowType {
	some := &rowType{table: t.table}
	for _, c := range t.columns {
		if keep(c) {
			some.columns = append(some.columns, c)
		}
	}
	return some
}

// numberedAssignments sets all columns but the id, over the version before.
func (t *rowType) numberedAssignments() string {
	var set, where []string
	for i, c := range t.columns {
		switch c.name {
		case "id":
			where = append(where, fmt.Sprintf("id = $%d", i+1))
		case "version":
			where = append(where, fmt.Sprintf("version = $%d::bigint - 1", i+1))
			fallthrough
		default:
			set = append(set, fmt.Sprintf("%s = $%d::%s", c.name, i+1, elementName[c.kind]))
		}
	}
	return strings.Join(set, ", ") + " WHERE " + strings.Join(where, " AND ")
}

// arrayParameters lists one parameter for each column, with the type of its array.
func (t *rowType) arrayParameters() string {
	list := make([]string, len(t.columns))
	for i, c := range t.columns {
		list[i] = fmt.Sprintf("$%d::%s[]", i+1, elementName[c.kind])
	}
	return strings.Join(list, ", ")
}

// knownTexts are the texts that were made of others, by those. All texts of this package
// are constant, or differ only in how many placeholders a list has, so there are few.
type knownTexts struct{ byText sync.Map }

// textFor returns what is made of a text, which is made once.
func (k *knownTexts) textFor(text string, write func(text string) string) string {
	if known, ok := k.byText.Load(text); ok {
		if made, ok := known.(string); ok {
			return made
		}
	}
	made := write(text)
	k.byText.Store(text, made)
	return made
}

var numberedTexts, checkedTexts knownTexts

// numberPlaceholders numbers the placeholders of a statement, as PostgreSQL wants
// them.
func numberPlaceholders(statement string) string {
	return numberedTexts.textFor(statement, writeNumbers)
}

func writeNumbers(statement string) string {
	text, _ := countPlaceholders(statement)
	return text
}

// checkRows is numberPlaceholders for a statement that must write as many rows as one
// more parameter says.
func checkRows(statement string) string {
	return checkedTexts.textFor(statement, func(statement string) string {
		text, n := countPlaceholders(statement)
		return "WITH written AS (" + text + " RETURNING 1) " + fmt.Sprintf(condition, "$"+strconv.Itoa(n+1))
	})
}

func countPlaceholders(statement string) (numbered string, n int) {
	var b strings.Builder
	for _, c := range statement {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String(), n
}

// withConflict adds the clause for a row that exists already, if there is one.
func withConflict(statement, conflict string) string {
	if conflict == "" {
		return statement
	}
	return statement + " " + conflict
}
