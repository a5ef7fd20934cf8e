//go:build services

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database that was made read-only is named by the doctor, whose fix mends it.
func TestTheDoctorMendsAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	redisURL, _ := newRedis(t)
	database := newPostgres(t)
	env := []string{"FOREWARM_DATABASE=" + database, "FOREWARM_REDIS=" + redisURL, pepperVariable}
	migrate := h.start(t, env, "migrate")
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	admin, _, name := besideDatabase(t, database)
	name = strings.TrimSuffix(name, "_restored")
	runAsAdmin(t, admin, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")

	look := h.start(t, env, "doctor")
	require.NotZero(t, look.wait(t, patience))
	fix := regexp.MustCompile(`(?m)^failed +database +PostgreSQL is read-only, .*: run (ALTER DATABASE .*)$`).
		FindStringSubmatch(look.output())
	require.NotNil(t, fix, look.output())
	runAsAdmin(t, admin, fix[1])
	look = h.start(t, env, "doctor")
	require.Zero(t, look.wait(t, patience), look.output())
	require.NotContains(t, look.output(), "read-only")
}
