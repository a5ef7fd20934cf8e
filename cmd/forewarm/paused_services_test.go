//go:build services

package main_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// TestAPausedServerHoldsNobodyUp: of two servers under load one is stopped in the
// middle of whatever it does, again and again. The other does what it is asked while
// the first is stopped, and gives nothing up: PostgreSQL ends the transaction that
// stands. When the first goes on nothing is doubled.
func TestAPausedServerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h, env, key := newInstallation(t)
	serve := func() (*process, *client.Client) {
		address := freePort(t)
		_, api := openDoor(t, "http://"+address, key)
		p := h.start(t, append(env, "FOREWARM_LISTEN="+address), "server", "--config", h.configFile())
		eventually(t, patience, func() string {
			if _, err := api.Whoami(t.Context()); err != nil {
				return err.Error()
			}
			return ""
		})
		return p, api
	}
	paused, busy := serve()
	_, other := serve()
	h.start(t, env, "worker", "--config", h.configFile())

	l := newLoad(busy)
	stop := l.startPeople(t.Context(), 24, 7)
	slowest, chance := time.Duration(0),
		rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a test's chance is to be repeatable
	for round := range 8 {
		pauseAtRandom(t.Context(), chance, time.Second) // the load runs
		require.NoError(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
		for i := range 5 {
			began := time.Now()
			start := began.AddDate(0, 0, 1+round).Add(time.Duration(i) * time.Hour)
			name := fmt.Sprintf("beside-%d-%d", round, i)
			made, err := other.Reserve(t.Context(), contract.ReservationCreate{
				Pool: loadPool, GPUs: 1, Start: start, End: start.Add(time.Minute), Name: name,
			}, client.Options{})
			assert.NoError(t, err)
			l.noteAcknowledged(name, made.ID, err == nil)
			slowest = max(slowest, time.Since(began))
		}
		require.NoError(t, paused.cmd.Process.Signal(syscall.SIGCONT))
	}
	stop()
	t.Logf("the slowest answer beside a paused server: %v", slowest)
	l.checkBookings(t)
}
