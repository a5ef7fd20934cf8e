//go:build services

package main_test

import (
	"context"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/ids"
)

// redisDB is a database of the Redis server that no other suite uses, so that
// it can be emptied whole.
const redisDB = "11"

// newPostgres makes an empty database that is dropped when the test ends, and
// returns its URL.
func newPostgres(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(os.Getenv("FOREWARM_TEST_POSTGRES"))
	require.NoError(t, err)
	require.NotEmpty(t, address.Host, "FOREWARM_TEST_POSTGRES must name a server on which databases may be made")
	name := "forewarm_e2e_" + strings.ReplaceAll(ids.UUID{}.New("tst"), "_", "")
	runAsAdmin(t, address.String(), "CREATE DATABASE "+name)
	server := address.String()
	t.Cleanup(func() { runAsAdmin(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	address.Path = "/" + name
	return address.String()
}

func runAsAdmin(t *testing.T, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a cleanup's t.Context is over
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

// newRedis is a Redis database of the test's own.
func newRedis(t *testing.T) (address string, db *redis.Client) {
	t.Helper()
	parsed, err := url.Parse(os.Getenv("FOREWARM_TEST_REDIS"))
	require.NoError(t, err)
	require.NotEmpty(t, parsed.Host, "FOREWARM_TEST_REDIS must name a Redis")
	parsed.Path = "/" + redisDB
	opts, err := redis.ParseURL(parsed.String())
	require.NoError(t, err)
	db = redis.NewClient(opts)
	require.NoError(t, db.FlushDB(t.Context()).Err())
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return parsed.String(), db
}

// Trap a in production's form: see raceForGPUs.
func TestTrapAPostgres(t *testing.T) {
	t.Parallel()
	raceForGPUs(t, newPostgres(t))
}

// Trap c in production's form: server and worker are killed, and Redis is
// emptied, at any moment, under load. There is one worker, since the simulated
// cloud's file serves one process at a time.
func TestTrapCKillNineServices(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeCloud(t)
	redisURL, redisDB := newRedis(t)
	env :=
		[]string{"FOREWARM_DATABASE=" + newPostgres(t), "FOREWARM_REDIS=" + redisURL, "FOREWARM_LISTEN=" + freePort(t),
			"FOREWARM_PEPPER=1:" + strings.Repeat("5a", 32)}
	migrate := h.start(t, env, "migrate", "--config", h.configFile())
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	_, api := openDoor(t, "http://"+strings.TrimPrefix(env[2], "FOREWARM_LISTEN="), strings.TrimSpace(migrate.output()))

	server := h.start(t, env, "server", "--config", h.configFile())
	worker := h.start(t, env, "worker", "--config", h.configFile())
	eventually(t, patience, func() string {
		if _, err := api.Whoami(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	l := newLoad(api)
	const seed = 11
	stop := l.startPeople(t.Context(), 6, seed)
	chance := rand.New(rand.NewPCG(seed, 99)) //nolint:gosec // a test's chance is to be repeatable
	for i, moment := range []string{
		"node.requested", "", "allocation.pending", "node.booting", "", "node.provisioning", "node.draining", "",
		"reservation.claimed",
		"node.deprovisioning", "", "allocation.active", "",
	} {
		untilMoment(t.Context(), api, moment, chance)
		require.NoError(t, redisDB.FlushDB(t.Context()).Err())
		worker.kill()
		for node, machines := range liveMachines(h.readBill(t)) {
			assert.Len(t, machines, 1, "machines of node %s", node)
		}
		if i%3 == 2 {
			server.kill()
			server = h.start(t, env, "server", "--config", h.configFile())
		}
		worker = h.start(t, env, "worker", "--config", h.configFile())
	}
	stop()
	for _, b := range l.listBookings(t) {
		if b.state == "active" || b.state == "pending" {
			l.releaseGPUs(t.Context(), b.id)
		}
	}
	l.checkBookings(t)
	awaitQuiet(t, api)
	require.Zero(t, worker.stop(t, ending), worker.errors.String())
	compareBill(t, h, api)
	require.Zero(t, server.stop(t, ending), server.errors.String())
}
