package sqlledger

import (
	"context"
	"fmt"
)

// SettingWarnings returns the settings of PostgreSQL with which a power cut or a crash can
// lose answered requests, or break the files, and those with which tables grow slow. None:
// what is committed stays, and is found as fast in a year.
func (s *Store) SettingWarnings(ctx context.Context) ([]string, error) {
	if !s.dialect.batches {
		return nil, nil
	}
	var settings []struct{ Name, Setting string }
	err := s.read.WithContext(ctx).Raw("SELECT name, setting FROM pg_settings WHERE setting = 'off' AND " +
		"name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts') ORDER BY name").
		Scan(&settings).Error
	if err != nil {
		return nil, wrapError("asking how durable commits are", err)
	}
	cost := map[string]string{
		"autovacuum": growsSlow + "; set it to on and reload the server",
		"track_counts": "autovacuum, which needs it, does nothing: " + growsSlow +
			"; set it to on and reload the server",
		"fsync":              "after a crash of its machine the database can be broken, and what was promised lost",
		"full_page_writes":   "after a crash of its machine the database can be broken",
		"synchronous_commit": "a crash loses the last moments of what was promised",
	}
	var doubts []string
	for _, one := range settings {
		doubts = append(doubts, fmt.Sprintf("PostgreSQL runs with %s=off: %s", one.Name, cost[one.Name]))
	}
	return s.appendUnvacuumed(ctx, doubts)
}

const growsSlow = "deleted and changed rows stay in the tables, which grow and become slow"

// appendUnvacuumed adds a warning for each table that autovacuum passes over.
func (s *Store) appendUnvacuumed(ctx context.Context, doubts []string) ([]string, error) {
	var tables []string
	err := s.read.WithContext(ctx).Raw("SELECT relname FROM pg_class, unnest(reloptions) AS option " +
		"WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace " +
		"AND option ~ '^autovacuum_enabled=(f|of|n|0)' ORDER BY relname").Scan(&tables).Error
	for _, table := range tables {
		doubts = append(doubts, fmt.Sprintf("autovacuum is off for table %s: %s; run ALTER TABLE %s RESET "+
			"(autovacuum_enabled)", table, growsSlow, table))
	}
	return doubts, wrapError("asking which tables are vacuumed", err)
}
