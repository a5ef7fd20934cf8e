//go:build services

package proof_test

import (
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/forewarm/forewarm/ledger/sqlledger"
)

func TestUpgradeOfEachReleaseOnPostgreSQL(t *testing.T) {
	t.Parallel()
	forEachRelease(t, func(t *testing.T, release string) {
		address := createPostgres(t)
		upgradeAndGoOn(t, release, database{driver: "pgx", address: address, empty: createPostgres(t),
			dialect: goose.DialectPostgres, folder: "postgres", config: sqlledger.Config{URL: address},
			set: moveClockOf(t, address)})
	})
}
