//go:build services

package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What compose.yaml runs in containers works as processes: its file, with
// migrate, server and worker on PostgreSQL and Redis.
func TestTheConfigurationOfCompose(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const file = "../../deploy/compose.forewarm.yaml"
	redisURL, _ := newRedis(t)
	address := freePort(t)
	shared := []string{"FOREWARM_DATABASE=" + newPostgres(t), "FOREWARM_REDIS=" + redisURL,
		"FOREWARM_PEPPER=1:" + strings.Repeat("cd", 32)}
	with := func(part string) []string {
		return append([]string{"FOREWARM_LISTEN=" + address, "FOREWARM_DATA_DIR=" + filepath.Join(h.dir, part)},
			shared...)
	}
	migrate := h.start(t, with("migrate"), "migrate", "--config", file)
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	server := h.start(t, with("server"), "server", "--config", file)
	worker := h.start(t, with("worker"), "worker", "--config", file)
	_, api := openDoor(t, "http://"+address, strings.TrimSpace(migrate.output()))
	eventually(t, patience, func() string {
		if _, err := api.Whoami(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	bootsIn(t, api, "a100")
	require.Zero(t, worker.stop(t, ending), worker.errors.String())
	require.Zero(t, server.stop(t, ending), server.errors.String())
}
