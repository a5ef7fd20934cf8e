package sqlledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	postgresdialect "gorm.io/driver/postgres"
	sqlitedialect "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/internal/ids"
)

// dialect holds, as data, what differs between the databases.
type dialect struct {
	folder     string // of the migrations
	goose      goose.Dialect
	now        string // asks for the time in microseconds; empty: the Clock tells it
	overtakes  bool   // an event can appear after one with a larger number: see horizon
	dueTask    string // see dueTask
	skipLocked string // ends a query for rows to update
	elements   string // selects the strings of a JSON list: one text, however long the list
	written    string // compares with the ids that the changes of a pool after a number list
	snapshot   sql.TxOptions
	batches    bool // statements are sent in batches: see session
}

var sqliteDialect = dialect{
	folder:   "sqlite",
	goose:    goose.DialectSQLite3,
	elements: "SELECT value FROM json_each(?)",
	written: "IN (SELECT e.value FROM pool_changes AS c, json_each(c.ids) AS e " +
		"WHERE c.pool_id = ? AND c.number > ?)",
	snapshot: sql.TxOptions{ReadOnly: true},
}

var postgresDialect = dialect{
	folder:     "postgres",
	goose:      goose.DialectPostgres,
	now:        "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
	overtakes:  true,
	skipLocked: " FOR UPDATE SKIP LOCKED",
	elements:   "SELECT json_array_elements_text(CAST(? AS json))",
	// An array, because the planner guesses that one is short, and uses the index.
	written: "= ANY(ARRAY(SELECT json_array_elements_text(CAST(ids AS json)) FROM pool_changes " +
		"WHERE pool_id = ? AND number > ?))",
	batches:  true,
	snapshot: sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
}

func (s *Store) openSQLite(ctx context.Context, cfg Config) error {
	s.dialect = sqliteDialect
	s.dialect.dueTask = dueTask(&s.dialect)
	path := strings.TrimPrefix(cfg.URL, "sqlite://")
	s.place, s.alone = path, cfg.Alone || path == ":memory:"
	switch {
	case path == ":memory:":
		return s.openMemory(ctx, cfg)
	case hasOptions(path): // they would become part of the file's name
		return errOptions
	case cfg.ReadOnly:
		s.looks = true
		return s.openPair(ctx, cfg, fileName(path), readOnlyOptions(path))
	}
	// SQLite would make the file readable by everybody.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return s.openPair(ctx, cfg, fileName(path), url.Values{"_pragma": {"journal_mode(WAL)"}})
}

// errOptions says nothing of the options either: see errUnreadable.
var errOptions = errors.New("the URL has options after a ?, and one of SQLite takes none: write sqlite:///path alone")

// hasOptions reports whether a path ends in what looks like the options of a URL. A ? alone
// may be part of a name.
func hasOptions(path string) bool {
	_, options, _ := strings.Cut(path, "?")
	return strings.Contains(options, "=")
}

func fileName(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// readOnlyOptions are those of a connection that leaves a file as it is. A reader of a
// file without a write-ahead log would make one beside it, unless it is told that nobody
// writes; a file that a process has open has a log.
func readOnlyOptions(path string) url.Values {
	options := url.Values{"mode": {"ro"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		options.Set("immutable", "1")
	}
	return options
}

// openMemory opens a database that lives as long as one connection to it is open,
// and keeps one open for that. It has no write-ahead log: a reader and a writer
// wait for each other.
//
// A simulation is one goroutine, and gets one connection for everything: any other
// connection would read the database anew after each write.
func (s *Store) openMemory(ctx context.Context, cfg Config) error {
	if cfg.Unsafe {
		return s.openSingle(ctx, cfg)
	}
	name, options := "file:/"+ids.UUID{}.New("mem"), url.Values{"vfs": {"memdb"}}
	s.memory = name + "?" + options.Encode()
	keep, err := s.openConnections(ctx, name, sqliteOptions(cfg, options), 1)
	if err != nil {
		return err
	}
	conn, err := keep.Conn(ctx)
	if err != nil {
		return err
	}
	s.close = append(s.close, conn.Close)
	return s.openPair(ctx, cfg, name, options)
}

// ownMemory is the name of a database in memory that belongs to its one connection.
const ownMemory = "file::memory:"

// openSingle opens a database in memory that belongs to its one connection.
func (s *Store) openSingle(ctx context.Context, cfg Config) error {
	var err error
	s.memory = ownMemory
	if s.writer, err = s.openConnections(ctx, ownMemory, sqliteOptions(cfg, nil), 1); err != nil {
		return err
	}
	s.write, err = s.openORM(sqliteDialector(s.writer), cfg)
	s.read = s.write
	return err
}

// openPair opens the one connection that writes, and the connections that read.
func (s *Store) openPair(ctx context.Context, cfg Config, name string, options url.Values) error {
	var err error
	if s.writer, err = s.openConnections(ctx, name, sqliteOptions(cfg, options), 1); err != nil {
		return err
	}
	if s.write, err = s.openORM(sqliteDialector(s.writer), cfg); err != nil {
		return err
	}
	readers, err := s.openConnections(ctx, name, sqliteOptions(cfg, options, "query_only(1)"), cmp.Or(cfg.MaxConns, 4))
	if err != nil {
		return err
	}
	s.read, err = s.openORM(sqliteDialector(readers), cfg)
	return err
}

// sqliteOptions returns the options of a connection: those that all have, and more.
func sqliteOptions(cfg Config, more url.Values, pragmas ...string) url.Values {
	synchronous := "FULL"
	if cfg.Unsafe {
		synchronous = "OFF"
	}
	all := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(5000)", "foreign_keys(1)", "synchronous(" + synchronous + ")",
			"secure_delete(1)", // the input of jobs has secrets, which are gone from the file once they are deleted
		},
	}
	for name, values := range more {
		all[name] = append(all[name], values...)
	}
	all["_pragma"] = append(all["_pragma"], pragmas...)
	return all
}

func sqliteDialector(db *sql.DB) gorm.Dialector {
	return sqlitedialect.New(sqlitedialect.Config{Conn: db})
}

// openConnections opens a pool of connections to a SQLite database.
func (s *Store) openConnections(ctx context.Context, name string, options url.Values, conns int) (*sql.DB, error) {
	db := sql.OpenDB(preparingConnector{name: name + "?" + options.Encode()})
	s.close = append(s.close, db.Close)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, db.PingContext(ctx)
}

func (s *Store) openPostgres(ctx context.Context, cfg Config) error {
	s.dialect = postgresDialect
	s.dialect.dueTask = dueTask(&s.dialect)
	config, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return errUnreadable
	}
	addTimeouts(config)
	s.config, s.place = config, "the PostgreSQL server "+config.Host
	s.urgent.open(config)
	s.close = append(s.close, s.urgent.close)
	conns := max(cmp.Or(cfg.MaxConns, defaultConns), 2) // a reader of events may need another: see horizon
	s.writer = stdlib.OpenDB(*config, stdlib.OptionAfterConnect(tuneSession))
	s.close = append(s.close, s.writer.Close)
	s.writer.SetMaxOpenConns(conns)
	s.writer.SetMaxIdleConns(conns)
	if err := s.writer.PingContext(ctx); err != nil {
		return wrapError("connecting", err)
	}
	s.write, err = s.openORM(postgresdialect.New(postgresdialect.Config{Conn: s.writer}), cfg)
	s.read = s.write
	return err
}

// errUnreadable says nothing of what was written: any part of what cannot be read
// may be the password.
var errUnreadable = errors.New("the URL cannot be read: write postgres://user:password@host:5432/name with special " +
	"characters of the password as %xx, " +
	"and options such as sslmode with values that libpq knows")

// openORM wraps a pool of connections. Everything runs in this package's own
// transactions, so gorm's are off. So are its prepared statements, which would end
// with the transaction that they were prepared in: pgx keeps its own, and
// preparedConn keeps SQLite's.
func (s *Store) openORM(dialector gorm.Dialector, cfg Config) (*gorm.DB, error) {
	return gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		AllowGlobalUpdate:      false,
		Logger:                 newLogger(cfg.Logger),
	})
}
