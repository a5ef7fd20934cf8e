//go:build services

package main_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// A backup that lacks only the last lease: its machine is known, so that only the
// mark of the journal's end, which whoever was told to end has written, keeps the
// same GPUs from being given away twice.
func TestABackupWithoutTheLastLeaseHandsNothingOut(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"server", "worker"} {
		t.Run(who+" remembers", func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.writeCloud(t)
			redisURL, _ := newRedis(t)
			database, address := newPostgres(t), freePort(t)
			env := func(database string) []string {
				return []string{"FOREWARM_DATABASE=" + database, "FOREWARM_REDIS=" + redisURL,
					"FOREWARM_LISTEN=" + address, pepperVariable}
			}
			migrate := h.start(t, env(database), "migrate", "--config", h.configFile())
			require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
			_, api := openDoor(t, "http://"+address, strings.TrimSpace(migrate.output()))
			dirs := map[string]string{"server": filepath.Join(h.dir, "server"),
				"worker": filepath.Join(h.dir, "worker")}
			both := func(database string) (stop func()) {
				server := h.start(t, env(database), "server", "--config", h.configFile(), "--data-dir", dirs["server"])
				worker := h.start(t, env(database), "worker", "--config", h.configFile(), "--data-dir", dirs["worker"])
				untilReady(t, address, "/readyz")
				return func() {
					require.Zero(t, server.stop(t, ending), server.errors.String())
					require.Zero(t, worker.stop(t, ending), worker.errors.String())
				}
			}
			one := contract.AllocationCreate{Pool: loadPool, GPUs: 1, LeaseSeconds: 3600}
			stop := both(database)
			holdGPUs(t, api, one) // its machine is in the backup
			stop()
			backup := copyDatabase(t, database)
			stop = both(database)
			holdGPUs(t, api, one) // on the same machine, at once
			stop()

			for other := range dirs {
				if other != who {
					dirs[other] += "-anew" // it remembers nothing
				}
			}
			stop = both(backup)
			eventually(t, patience, func() string {
				if got, err := api.Recovery(t.Context()); err != nil || !got.Recovering {
					return "it does not recover"
				}
				return ""
			})
			_, err := api.Allocate(t.Context(), one, client.Options{})
			var told *client.Error
			require.ErrorAs(t, err, &told)
			require.Equal(t, contract.CodeRecovering, told.Problem.Code)
			stop()
		})
	}
}

// copyDatabase is a database as it is now, under another name.
func copyDatabase(t *testing.T, database string) string {
	t.Helper()
	address, err := url.Parse(database)
	require.NoError(t, err)
	from := strings.TrimPrefix(address.Path, "/")
	server := *address
	server.Path = "/postgres"
	runAsAdmin(t, server.String(), "CREATE DATABASE "+from+"_copy TEMPLATE "+from)
	t.Cleanup(func() { runAsAdmin(t, server.String(), "DROP DATABASE "+from+"_copy WITH (FORCE)") })
	address.Path += "_copy"
	return address.String()
}
