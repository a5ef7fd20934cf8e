//go:build services

package main_test

import (
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// startRedis runs a Redis of the test's own at an address, until it is killed.
func startRedis(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	redis := exec.Command("redis-server", "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir",
		t.TempDir()) //nolint:gosec // our own arguments
	require.NoError(t, redis.Start())
	t.Cleanup(func() { _ = redis.Process.Kill(); _ = redis.Wait() })
	eventually(t, patience, func() string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err.Error()
		}
		_ = conn.Close()
		return ""
	})
	return redis
}

// Redis only rings the bell: killed or hanging, it stops no work, a worker may
// even start without it, and whoever asks is told.
func TestWorkGoesOnWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "hanging": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redisAddress, address, metrics := freePort(t), freePort(t), freePort(t)
			redis := startRedis(t, redisAddress)
			h := newHome(t)
			h.writeCloud(t)
			env := []string{
				"FOREWARM_DATABASE=" + newPostgres(t), "FOREWARM_REDIS=redis://" + redisAddress + "/0", pepperVariable,
				"FOREWARM_LISTEN=" + address, "FOREWARM_METRICS_LISTEN=" + metrics,
			}
			migrate := h.start(t, env, "migrate", "--config", h.configFile())
			require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
			server := h.start(t, env, "server", "--config", h.configFile())
			worker := h.start(t, env, "worker", "--config", h.configFile())
			untilReady(t, address, "/readyz")
			untilReady(t, metrics, "/readyz")
			_, api := openDoor(t, "http://"+address, strings.TrimSpace(migrate.output()))

			require.NoError(t, redis.Process.Signal(signal))
			requireService(t, api)
			eventually(t, patience, func() string {
				if code, text := probeServer(t, metrics, "/readyz"); code != 200 ||
					!strings.Contains(text, "Redis at redis://") {
					return text
				}
				return ""
			})
			_, text := probeServer(t, metrics, "/metrics")
			require.Contains(t, text, "\nforewarm_queue_up 0\n")
			require.Contains(t, text, "\nforewarm_ready 1\n")
			require.Zero(t, worker.stop(t, ending), worker.errors.String())
			require.Contains(t, worker.errors.String(), "due work is done straight from the database")
			require.NotContains(t, worker.errors.String(), "level=ERROR")

			worker = h.start(t, env, "worker", "--config", h.configFile())
			untilReady(t, metrics, "/readyz")
			requireService(t, api)
			_ = redis.Process.Kill()
			_ = redis.Wait()
			startRedis(t, redisAddress)
			eventually(t, patience, func() string {
				if _, text := probeServer(t, metrics, "/metrics"); !strings.Contains(text, "\nforewarm_queue_up 1\n") {
					return text
				}
				return ""
			})
			requireService(t, api)
			require.Zero(t, worker.stop(t, ending), worker.errors.String())
			require.Zero(t, server.stop(t, ending), server.errors.String())
		})
	}
}

// requireService allocates GPUs, gets them, and gives them back.
func requireService(t *testing.T, api *client.Client) {
	t.Helper()
	id := holdGPUs(t, api, contract.AllocationCreate{Pool: loadPool, GPUs: 4})
	_, err := api.Release(t.Context(), id)
	require.NoError(t, err)
}
