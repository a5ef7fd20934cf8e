//go:build services

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another pepper than the one of forewarm migrate is told at the first start of
// anything, before the journal has a seal; key recover with the right one makes a
// key that opens the API.
func TestThePepperOfAnInstallation(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	redisURL, _ := newRedis(t)
	address := freePort(t)
	services :=
		[]string{"FOREWARM_DATABASE=" + newPostgres(t), "FOREWARM_REDIS=" + redisURL, "FOREWARM_LISTEN=" + address}
	right := append(services[:3:3], pepperVariable)
	wrong := append(services[:3:3], "FOREWARM_PEPPER=1:"+strings.Repeat("ab", 32))
	early := h.start(t, right, "key", "recover", "--data-dir", h.dataDir())
	require.Equal(t, 1, early.wait(t, patience))
	require.Contains(t, early.errors.String(), "run forewarm migrate")
	migrate := h.start(t, right, "migrate", "--data-dir", h.dataDir())
	require.Zero(t, migrate.wait(t, patience), migrate.errors.String())
	for _, command := range [][]string{{"server"}, {"worker"}, {"migrate"}, {"up"}, {"key", "recover"}} {
		p := h.start(t, wrong, append(command, "--data-dir", h.dataDir())...)
		require.Equal(t, 1, p.wait(t, patience), "%v: %s", command, p.errors.String())
		require.Contains(t, p.errors.String(), "another pepper", command)
	}
	none := h.start(t, services, "key", "recover", "--data-dir", h.dataDir())
	require.Equal(t, 1, none.wait(t, patience))
	require.Contains(t, none.errors.String(), "FOREWARM_PEPPER is not set")

	server := h.start(t, right, "server", "--data-dir", h.dataDir())
	untilReady(t, address, "/readyz")
	again := h.start(t, right, "key", "recover", "--data-dir", h.dataDir())
	_, found := again.awaitLine(t, 0, patience, regexp.MustCompile(`^(fw_live_\S+)$`))
	require.Zero(t, again.wait(t, patience), again.errors.String())
	opensAt(t, "http://"+address, found[1])
	require.Zero(t, server.stop(t, ending), server.errors.String())
}
