// Package sqlledger keeps the ledger in a SQL database: PostgreSQL for an
// installation, SQLite for one process. It is the one implementation of
// ledger.Store; ledgertest is the suite that both databases pass.
//
// The databases reach isolation in different ways, which callers do not notice:
//   - PostgreSQL reads committed rows, and verbs take turns at the rows that they
//     lock, organization before pool before task. Snapshots are repeatable reads.
//   - SQLite has one connection that writes, whose transactions take the write
//     lock when they begin (a transaction that upgrades later fails with
//     SQLITE_BUSY whatever the timeout), and a pool of readers beside it.
//
// What every verb does bypasses gorm: Lock, PoolState and Save read and write rows
// by the columns of their row types, in statements whose text never changes. On
// PostgreSQL each of them is one round trip, the first with BEGIN and the last
// with COMMIT (session, batchWriter), and rows are sent as one array for each
// column. On SQLite there is no round trip to save (directWriter).
//
// gorm does the rest, and it fails open: a zero field drops out of a struct
// condition, a string from outside becomes SQL, and Or undoes a tenant filter. So
// all conditions are constant text with placeholders, every query starts from a
// fresh session (newQuery), and inScope alone knows what a tenant may see.
//
// Of each noun, rows_NOUN.go has the rows and converts them from and to values, and
// read_NOUN.go has the reader. The readers of all nouns share one connection;
// together they are the port's Reader (reader.go).
package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// Config says where the ledger is kept.
type Config struct {
	// URL is sqlite:// and a path, sqlite://:memory: for a database that ends
	// with the Store, or a postgres:// URL.
	URL string
	// Clock is SQLite's time; nil means this machine's. PostgreSQL uses its own
	// clock.
	Clock clock.Clock
	// Logger is told of statements that failed for a reason that no caller can act
	// on. Nil means none. Values are never logged.
	Logger *slog.Logger
	// MaxConns bounds the connections to PostgreSQL (zero means 16; it is at least
	// 2) and the connections that read from SQLite (zero means 4).
	MaxConns int
	// ReadOnly opens a file of SQLite, which must be there, without changing it or its log,
	// so every write fails. PostgreSQL is opened as ever.
	ReadOnly bool
	// Unsafe lets SQLite answer before the data is on disk, and gives a database in
	// memory one connection, on which a Read must not wait inside another. It is
	// for simulations, whose ledger nobody needs after a power cut.
	Unsafe bool
	// Alone says that no other process writes to a file of SQLite, so that whoever waits
	// for tasks need not ask for them: see ledger.Store's TasksSaved.
	Alone bool
	// Seed seeds the pauses before a transaction is tried again. It should differ
	// between processes that share a database.
	Seed uint64
}

// Store is the ledger in one database. It is safe for concurrent use.
type Store struct {
	dialect dialect
	clock   clock.Clock
	write   *gorm.DB
	read    *gorm.DB
	writer  *sql.DB
	logger  *slog.Logger
	close   []func() error
	config  *pgx.ConnConfig // of PostgreSQL's connections
	place   string          // where the data is, for errors
	memory  string          // the name of the database in memory; empty: it is elsewhere
	process string          // the id of this process in heartbeats
	beat    atomic.Int64
	newest  func() (int64, error) // see newestMigration
	dbTime  timeEstimate          // on PostgreSQL
	horizon horizon               // on PostgreSQL
	live    liveStates
	charged charged
	alone   bool   // nobody else writes
	looks   bool   // at a file of SQLite, and changes nothing: Config.ReadOnly
	tasks   signal // if alone
	urgent  urgency

	mu   sync.Mutex
	rand *rand.Rand
}

var _ ledger.Store = (*Store)(nil)

// Open connects to the database. It changes nothing there: see Migrate.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	s := &Store{
		clock: cfg.Clock, logger: cfg.Logger, rand: rand.New(rand.NewPCG(cfg.Seed, cfg.Seed)),
		process: ids.UUID{}.New("prc"),
	}
	s.newest = sync.OnceValues(s.newestMigration)
	var err error
	switch {
	case strings.HasPrefix(cfg.URL, "sqlite://"):
		err = s.openSQLite(ctx, cfg)
	case strings.HasPrefix(cfg.URL, "postgres://"), strings.HasPrefix(cfg.URL, "postgresql://"):
		err = s.openPostgres(ctx, cfg)
	default:
		err = errors.New("the URL must begin with sqlite:// or postgres://")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the database: %w", err), s.Close())
	}
	return s, nil
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.writer.PingContext(ctx); err != nil {
		return fmt.Errorf("pinging the database: %w", err)
	}
	return nil
}

// DB returns the pool of connections that write, for its statistics; on PostgreSQL
// the same connections read, too. It belongs to the store.
func (s *Store) DB() *sql.DB { return s.writer }

// Close frees the connections.
func (s *Store) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	s.close = nil
	return errors.Join(errs...)
}
