package rig

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver that the ledger uses
)

// InstallFile makes an installation in a SQLite file, in a folder of its own among the
// temporary files. boot is how long the pool believes that a node takes.
func InstallFile(ctx context.Context, boot time.Duration) (*Installation, error) {
	folder, err := os.MkdirTemp("", "forewarm-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	db := &Database{URL: "sqlite://" + filepath.Join(folder, "forewarm.db"), folder: folder}
	i := &Installation{Database: db}
	if err := i.startServices(ctx, boot); err != nil {
		return nil, errors.Join(err, db.Drop(ctx))
	}
	return i, nil
}

// openFileCounter is openCounter for a SQLite file.
func (d *Database) openFileCounter(ctx context.Context) (count func(query string, ids []string) (int, error),
	done func(), err error) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(d.URL, "sqlite://"))
	if err != nil {
		return nil, nil, fmt.Errorf("opening the SQLite file: %w", err)
	}
	count = func(query string, ids []string) (n int, err error) {
		list, err := json.Marshal(ids)
		if err != nil {
			return 0, fmt.Errorf("encoding ids: %w", err)
		}
		query = strings.ReplaceAll(query, "= ANY($1)", "IN (SELECT value FROM json_each($1))")
		err = db.QueryRowContext(ctx, query, string(list)).Scan(&n)
		return n, err
	}
	return count, func() { _ = db.Close() }, nil
}
