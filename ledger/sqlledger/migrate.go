package sqlledger

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/migrations"
)

// Migrate brings the tables up to date. Several processes may call it at once on
// PostgreSQL: they wait for each other.
func (s *Store) Migrate(ctx context.Context) error {
	if copied, err := copyImage(ctx, s); copied || err != nil {
		return err
	}
	db, done := s.migrationDB()
	defer done()
	provider, err := s.migrationProvider(db)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	ran, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	if len(ran) < len(provider.ListSources()) { // something may be in it already
		return nil
	}
	return keepImage(ctx, s)
}

// SchemaVersion returns the numbers of the newest migration in the database and of
// the newest one that this program has. The tables fit when both are equal.
func (s *Store) SchemaVersion(ctx context.Context) (have, want int64, err error) {
	if s.looks {
		want, err = s.newest()
		if err == nil {
			have, err = readVersion(s.read.WithContext(ctx))
		}
		return have, want, err
	}
	provider, err := s.migrationProvider(s.writer)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the migrations: %w", err)
	}
	if have, want, err = provider.GetVersions(ctx); err != nil {
		return 0, 0, wrapError("reading the schema's version", err)
	}
	return have, want, nil
}

// readVersion reads the number of the newest migration in a file of SQLite, without the
// table that goose would make: 0 where nobody has set it up.
func readVersion(db *gorm.DB) (have int64, err error) {
	var tables int64
	err = db.Raw("SELECT COUNT(*) FROM sqlite_master WHERE name = 'goose_db_version'").Scan(&tables).Error
	if err == nil && tables > 0 {
		err = db.Raw("SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version").Scan(&have).Error
	}
	return have, wrapError("reading the schema's version", err)
}

// migrationDB returns a pool of connections for migrations, without time-outs: a
// migration waits for another as long as it takes.
func (s *Store) migrationDB() (db *sql.DB, done func()) {
	if s.config == nil {
		return s.writer, func() {}
	}
	db = stdlib.OpenDB(*withoutTimeouts(s.config))
	return db, func() { _ = db.Close() } // nobody else uses it
}

func (s *Store) migrationProvider(db *sql.DB) (*goose.Provider, error) {
	folder, err := fs.Sub(migrations.FS, s.dialect.folder)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.dialect.goose == goose.DialectPostgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(s.dialect.goose, db, folder, options...)
}
