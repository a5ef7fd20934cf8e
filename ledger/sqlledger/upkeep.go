package sqlledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// manyDead are the rows that autovacuum may well have left a moment ago; more of
	// them, where they are half of a table, say that it does not keep up.
	manyDead = 50_000
	// defaultConns are the connections of a process to PostgreSQL.
	defaultConns = 16
	// fewFree is the part of the connections, in percent, below which the next process
	// may not find one.
	fewFree = 10
)

// UpkeepWarnings returns what in the state of a PostgreSQL server makes Forewarm slower or will
// stop it, each with its fix; a transaction that was open for longer than longOpen is one. It is
// empty on SQLite. It reads statistics only.
func (s *Store) UpkeepWarnings(ctx context.Context, longOpen time.Duration) ([]string, error) {
	if !s.dialect.batches {
		return nil, nil
	}
	dead, err := s.findDead(ctx)
	if err != nil {
		return nil, err
	}
	forgotten, err := s.findForgotten(ctx, longOpen)
	if err != nil {
		return nil, err
	}
	few, err := s.countFree(ctx)
	return slices.Concat(dead, forgotten, few), err
}

// ServerVersion returns the database's name and version, such as "PostgreSQL 15.19".
func (s *Store) ServerVersion(ctx context.Context) (string, error) {
	query, name := "SELECT sqlite_version()", "SQLite "
	if s.dialect.batches {
		query, name = "SELECT split_part(current_setting('server_version'), ' ', 1)", "PostgreSQL "
	}
	var version string
	err := s.read.WithContext(ctx).Raw(query).Scan(&version).Error
	return name + version, wrapError("asking for the database's version", err)
}

// findDead names the tables in which autovacuum does not keep up.
func (s *Store) findDead(ctx context.Context) ([]string, error) {
	var tables []struct {
		Relname    string
		Dead, Live int64
	}
	err := s.read.WithContext(ctx).Raw("SELECT relname, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables "+
		"WHERE schemaname = current_schema() AND n_dead_tup > ? AND n_dead_tup > n_live_tup / 2 ORDER BY relname",
		manyDead).Scan(&tables).Error
	var doubts []string
	for _, t := range tables {
		doubts = append(doubts, fmt.Sprintf("table %s has %d dead rows beside %d live ones: autovacuum does not keep up; "+
			"run VACUUM %s once, then lower autovacuum_vacuum_cost_delay or raise autovacuum_max_workers",
			t.Relname, t.Dead, t.Live, t.Relname))
	}
	return doubts, wrapError("counting dead rows", err)
}

// findForgotten names transactions that hold back both autovacuum and the event feed, which
// shows nothing that is younger than the oldest open transaction.
func (s *Store) findForgotten(ctx context.Context, longOpen time.Duration) ([]string, error) {
	var open []struct {
		Pid     int
		Usename string
		Minutes int
	}
	err := s.read.WithContext(ctx).Raw("SELECT pid, COALESCE(usename, '') AS usename, "+
		"(EXTRACT(EPOCH FROM now() - xact_start) / 60)::int AS minutes FROM pg_stat_activity "+
		"WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' "+
		"AND xact_start < now() - make_interval(secs => ?) ORDER BY xact_start LIMIT 20",
		longOpen.Seconds()).Scan(&open).Error
	var doubts []string
	for _, o := range open {
		doubts = append(doubts, fmt.Sprintf("a transaction of user %q is open for %d minutes: events wait for its end, "+
			"and no table is vacuumed past its beginning; end it, or run SELECT pg_terminate_backend(%d)",
			o.Usename, o.Minutes, o.Pid))
	}
	return doubts, wrapError("looking for open transactions", err)
}

// countFree warns before the server has no connection left for another process.
func (s *Store) countFree(ctx context.Context) ([]string, error) {
	var used, most int
	err := s.read.WithContext(ctx).Raw("SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = "+
		"'client backend'), current_setting('max_connections')::int - "+
		"current_setting('superuser_reserved_connections')::int").Row().Scan(&used, &most)
	if err != nil {
		return nil, wrapError("counting connections", err)
	}
	if (most-used)*100 >= most*fewFree {
		return nil, nil
	}
	return []string{fmt.Sprintf("%d of the %d connections that PostgreSQL gives are in use: raise max_connections; a "+
		"server or worker of Forewarm takes up to %d", used, most, defaultConns)}, nil
}
