package forklock_test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
)

// While other goroutines start processes all the time, a program that was just
// written runs, and a port that was just handed out can be listened on.
func TestNothingIsLeftToAChild(t *testing.T) {
	t.Parallel()
	const starters, rounds = 8, 50
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range starters {
		all.Go(func() {
			for j := range rounds {
				program := filepath.Join(dir, fmt.Sprintf("program-%d-%d", i, j))
				assert.NoError(t, forklock.WriteProgram(program, "#!/bin/sh\nexit 0\n"))
				assert.NoError(t, exec.CommandContext(t.Context(), program).Run())
				l, err := new(net.ListenConfig).Listen(t.Context(), "tcp",
					fmt.Sprintf("127.0.0.1:%d", forklock.FreePort()))
				if assert.NoError(t, err) {
					assert.NoError(t, l.Close())
				}
			}
		})
	}
	all.Wait()
}

func TestPortsAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 100 {
		port := forklock.FreePort()
		require.False(t, seen[port], port)
		require.Less(t, port, 32_768)
		seen[port] = true
	}
}
