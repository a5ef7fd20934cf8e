package sqlledger

import (
	"context"
	"fmt"
)

// DurabilityWarnings returns the settings of PostgreSQL with which a power cut or a crash can
// lose answered requests, or break the files. None: what is committed stays.
func (s *Store) DurabilityWarnings(ctx context.Context) ([]string, error) {
	if !s.dialect.batches {
		return nil, nil
	}
	var settings []struct{ Name, Setting string }
	err := s.read.WithContext(ctx).Raw("SELECT name, setting FROM pg_settings WHERE setting = 'off' AND " +
		"name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name").Scan(&settings).Error
	if err != nil {
		return nil, wrapError("asking how durable commits are", err)
	}
	cost := map[string]string{
		"fsync":              "after a crash of its machine the database can be broken, and what was promised lost",
		"full_page_writes":   "after a crash of its machine the database can be broken",
		"synchronous_commit": "a crash loses the last moments of what was promised",
	}
	var doubts []string
	for _, one := range settings {
		doubts = append(doubts, fmt.Sprintf("PostgreSQL runs with %s=off: %s", one.Name, cost[one.Name]))
	}
	return doubts, nil
}
