package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/forewarm/forewarm/internal/ids"
)

// requireDurable prints the settings that durability hangs on and refuses a
// server that answers before the disk has the data: its figures would be of
// another program.
func requireDurable(ctx context.Context, out io.Writer, server string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, setting := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			return fmt.Errorf("reading %s: %w", setting, err)
		}
		fmt.Fprintf(out, "PostgreSQL %s = %s\n", setting, value)
		if setting != "server_version" && value != "on" {
			return fmt.Errorf("PostgreSQL runs with %s = %s: what it acknowledges would not survive a power cut",
				setting, value)
		}
	}
	return nil
}

// Database is a scratch database; Drop ends it.
type Database struct {
	URL    string
	server string
	name   string
	folder string // of a SQLite file, instead of a server
}

// NewDatabase makes an empty database on the server.
func NewDatabase(ctx context.Context, server string) (*Database, error) {
	address, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("the URL of PostgreSQL cannot be read") // it may hold a password
	}
	name := "forewarm_bench_" + strings.ReplaceAll(ids.UUID{}.New("run"), "_", "")
	if err := execOnServer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	address.Path = "/" + name
	return &Database{URL: address.String(), server: server, name: name}, nil
}

// Drop removes the database with whoever is still connected.
func (d *Database) Drop(ctx context.Context) error {
	if d.folder != "" {
		return os.RemoveAll(d.folder)
	}
	return execOnServer(ctx, d.server, "DROP DATABASE "+d.name+" WITH (FORCE)")
}

// Size is how much room the database takes, for people.
func (d *Database) Size(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return "", fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	var size string
	err = conn.QueryRow(ctx, "SELECT pg_size_pretty(pg_database_size($1))", d.name).Scan(&size)
	return size, errors.Join(err, conn.Close(ctx))
}

func execOnServer(ctx context.Context, server, statement string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	if err != nil {
		err = fmt.Errorf("%s: %w", statement, err)
	}
	return errors.Join(err, conn.Close(ctx))
}

// The questions that Verify asks of acknowledged ids.
const (
	ReservationRows   = "SELECT count(*) FROM reservations WHERE id = ANY($1)"
	ReservationEvents = "SELECT count(DISTINCT subject) FROM events WHERE subject = ANY($1) AND type = " +
		"'reservation.booked'"
	AllocationRows = "SELECT count(*) FROM allocations WHERE id = ANY($1)"
	UnbatchedRows  = "SELECT count(*) FROM unbatched WHERE id = ANY($1)"
)

// verifyAtOnce bounds the parameter of one question.
const verifyAtOnce = 20_000

// Verify counts every acknowledged id in the database with each of the queries
// and fails if one is missing or came twice.
func (d *Database) Verify(ctx context.Context, acknowledged []string, queries ...string) error {
	count, done, err := d.openCounter(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, query := range queries {
		var found int
		for part := range slices.Chunk(acknowledged, verifyAtOnce) {
			n, err := count(query, part)
			if err != nil {
				return fmt.Errorf("counting what was acknowledged: %w", err)
			}
			found += n
		}
		if found != len(acknowledged) {
			return fmt.Errorf("%d were acknowledged, the database has %d (%s)", len(acknowledged), found, query)
		}
	}
	return nil
}

// openCounter returns what asks the database one of the questions about some ids.
func (d *Database) openCounter(ctx context.Context) (count func(query string, ids []string) (int, error),
	done func(), err error) {
	if d.folder != "" {
		return d.openFileCounter(ctx)
	}
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	count = func(query string, ids []string) (n int, err error) {
		err = conn.QueryRow(ctx, query, ids).Scan(&n)
		return n, err
	}
	return count, func() { _ = conn.Close(ctx) }, nil
}
