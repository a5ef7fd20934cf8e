package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// RefusesWrites says that the database is read-only, why, and what mends it; empty: it is not. It changes nothing.
func RefusesWrites(ctx context.Context, s *Store) (string, error) {
	if !s.dialect.batches {
		if s.place == ":memory:" {
			return "", nil
		}
		return fileRefusesWrites(s.place, s.looks)
	}
	var is struct {
		Standby  bool
		Setting  string
		Source   string
		Database string
		Role     string
	}
	err := s.read.WithContext(ctx).Raw("SELECT pg_is_in_recovery() AS standby, setting, source, " +
		"quote_ident(current_database()) AS database, quote_ident(current_user) AS role " +
		"FROM pg_settings WHERE name = 'default_transaction_read_only'").Scan(&is).Error
	switch {
	case err != nil:
		return "", wrapError("asking whether the database takes writes", err)
	case is.Standby:
		return "PostgreSQL is a standby, which is read-only: name the primary in FOREWARM_DATABASE, or promote this one", nil
	case is.Setting != "on":
		return "", nil
	}
	const setting = "default_transaction_read_only"
	fix := map[string]string{
		"database":      fmt.Sprintf("run ALTER DATABASE %s RESET %s", is.Database, setting),
		"user":          fmt.Sprintf("run ALTER ROLE %s RESET %s", is.Role, setting),
		"database user": fmt.Sprintf("run ALTER ROLE %s IN DATABASE %s RESET %s", is.Role, is.Database, setting),
		"client":        "remove it from FOREWARM_DATABASE",
	}[is.Source]
	if fix == "" {
		fix = "run ALTER SYSTEM RESET " + setting + " or correct postgresql.conf, and reload the server"
	}
	return fmt.Sprintf("PostgreSQL is read-only, since %s is on: %s", setting, fix), nil
}

// fileRefusesWrites opens a file of SQLite for writing, and writes nothing. From root every file takes writes. Whoever
// looks on behalf of another process, which is seldom root, is told of the file's mode, too.
func fileRefusesWrites(path string, forAnother bool) (string, error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the database's own file
	switch {
	case errors.Is(err, syscall.EROFS):
		return path + " is on a file system that is mounted read-only: mount it for writing", nil
	case errors.Is(err, fs.ErrPermission):
		return path + " is read-only for this user: chown it to the user of forewarm, or chmod u+w", nil
	case err != nil:
		return "", fmt.Errorf("asking whether the database takes writes: %w", err)
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("asking whether the database takes writes: %w", err)
	}
	if forAnother && info.Mode().Perm()&0o200 == 0 {
		return fmt.Sprintf("%s is read-only (its mode is %04o): chmod u+w", path, info.Mode().Perm()), nil
	}
	return "", nil
}
