package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

// startAlone runs a command, and returns what it wrote, how it ended and why its launcher, if it had one, refused.
func startAlone(t *testing.T, l launch.Launcher, c launch.Command) (out string, code int, refusal string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	c.Out = file
	child, err := l.StartAlone(c)
	require.NoError(t, err)
	<-child.Exited()
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	return strings.TrimSpace(string(text)), child.Status().ExitStatus(), child.Close()
}

// A program of the machine's starts with the user of its command, without more groups than its own and without a way
// to others, and it needs no launcher.
func TestAProgramOfTheMachineNeedsNoLauncher(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can take another user")
	}
	home := "/"
	const script = "id -u; id -G; pwd; grep NoNewPrivs /proc/self/status; echo $ONLY; exit 5"
	c := launch.Command{Arguments: []string{"sh", "-c", script},
		Environment: []string{"PATH=/usr/bin:/bin", "ONLY=this"}, Directory: home, Home: home,
		User: &launch.User{UID: 1_900_000_001, GID: 1_900_000_001}}
	out, code, refusal := startAlone(t, launch.Launcher{"/nowhere"}, c)
	require.Equal(t, "1900000001\n1900000001\n/\nNoNewPrivs:\t1\nthis", out)
	require.Equal(t, 5, code)
	require.Empty(t, refusal)
}

// What a holder controls is touched by a launcher alone, which says why a command cannot start.
func TestWhatAHolderControlsNeedsALauncher(t *testing.T) {
	own := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(own, "true"), []byte("#!/bin/sh\necho mine"), 0o700))
	for name, c := range map[string]launch.Command{
		"a folder of its PATH": {Arguments: []string{"true"}, Environment: []string{"PATH=" + own + ":/bin"}},
		"its path":             {Arguments: []string{filepath.Join(own, "true")}},
		"a way around":         {Arguments: []string{"/bin/../bin/true"}},
		"its folder":           {Arguments: []string{"/bin/true"}, Directory: own},
	} {
		if c.Home = "/"; c.Directory == "" {
			c.Directory = "/"
		}
		_, err := launch.Launcher{"/nowhere"}.StartAlone(c)
		require.Error(t, err, name)
		_, code, refusal := startAlone(t, launchtest.Launcher(), c)
		require.Zero(t, code, name)
		require.Empty(t, refusal, name)
	}
	missing := launch.Command{Arguments: []string{"no-such-program"}, Environment: []string{"PATH=/bin"}, Directory: "/",
		Home: "/"}
	_, code, refusal := startAlone(t, launchtest.Launcher(), missing)
	require.Equal(t, 1, code)
	require.Contains(t, refusal, "there is no such program in /bin")
}
