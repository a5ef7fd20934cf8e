//go:build services

package main_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// databaseLine is a command for PostgreSQL's own programs, as the page on restoring shows it.
var databaseLine = regexp.MustCompile(`(?m)^\$ ((?:pg_dump|createdb|pg_restore|psql) .*)$`)

// A backup by the commands of the page, taken while everything runs and put into an empty database beside an empty
// Redis, hands nothing out until somebody confirms, and goes on then.
func TestABackupOfPostgreSQLByThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners.md")
	require.NoError(t, err)
	shown := databaseLine.FindAllStringSubmatch(string(page), -1)
	require.Len(t, shown, 4, "a dump, and three commands to restore it")
	h := newHome(t)
	h.writeCloud(t)
	redisURL, redis := newRedis(t)
	database, address := newPostgres(t), freePort(t)
	admin, restored, name := besideDatabase(t, database)
	run := func(command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", //nolint:gosec // our own page
			strings.ReplaceAll(command, "forewarm_restored", name))
		cmd.Dir = h.dir
		cmd.Env = append(os.Environ(), "FOREWARM_DATABASE="+database, "ADMIN="+admin, "RESTORED="+restored)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		require.Empty(t, string(out), command)
	}
	env := func(database string) []string {
		return []string{"FOREWARM_DATABASE=" + database, "FOREWARM_REDIS=" + redisURL, "FOREWARM_LISTEN=" + address,
			pepperVariable}
	}
	migrate := h.start(t, env(database), "migrate", "--config", h.configFile())
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	_, api := openDoor(t, "http://"+address, strings.TrimSpace(migrate.output()))
	start := func(role, database string) (stop func()) {
		p := h.start(t, env(database), role, "--config", h.configFile(), "--data-dir", filepath.Join(h.dir, role))
		untilReady(t, address, "/readyz")
		eventually(t, patience, func() string { // until then nothing heeds a signal
			if strings.Contains(p.errors.String(), "level=") {
				return ""
			}
			return "the " + role + " has not begun"
		})
		return func() { require.Zero(t, p.stop(t, ending), p.errors.String()) }
	}
	one := contract.AllocationCreate{Pool: loadPool, GPUs: 1, LeaseSeconds: 3600}

	stopServer, stopWorker := start("server", database), start("worker", database)
	kept := holdGPUs(t, api, one)
	run(shown[0][1])
	lost := holdGPUs(t, api, one)
	stopWorker()
	stopServer()
	t.Cleanup(func() { runAsAdmin(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	for _, line := range shown[1:] {
		run(line[1])
	}
	require.NoError(t, redis.FlushDB(t.Context()).Err())

	stopServer = start("server", restored)
	_, err = api.BeginRecovery(t.Context(), "restored the backup of the test")
	require.NoError(t, err)
	stopWorker = start("worker", restored)
	a, err := api.Allocation(t.Context(), kept)
	require.NoError(t, err)
	require.Equal(t, "active", a.State)
	_, err = api.Allocation(t.Context(), lost)
	require.ErrorContains(t, err, lost)
	var told *client.Error
	_, err = api.Allocate(t.Context(), one, client.Options{})
	require.ErrorAs(t, err, &told)
	require.Equal(t, contract.CodeRecovering, told.Problem.Code)
	_, err = api.AcceptJournal(t.Context())
	require.NoError(t, err)
	_, err = api.ConfirmRecovery(t.Context())
	require.NoError(t, err)
	holdGPUs(t, api, one)
	stopWorker()
	stopServer()
}

// besideDatabase is a database that is not there yet, by URL and name, and who may make it.
func besideDatabase(t *testing.T, database string) (admin, restored, name string) {
	t.Helper()
	address, err := url.Parse(database)
	require.NoError(t, err)
	name = strings.TrimPrefix(address.Path, "/") + "_restored"
	server := *address
	server.Path, address.Path = "/postgres", "/"+name
	return server.String(), address.String(), name
}
