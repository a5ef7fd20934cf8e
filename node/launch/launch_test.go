package launch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/leaktest"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func TestALauncherThatIsNoneSaysSo(t *testing.T) {
	for want, l := range map[string]launch.Launcher{
		"starting a command: there is no launcher": nil,
		"no such file or directory":                {"/no/such/program"},
		"waiting for the launcher: EOF":            {"/bin/sh", "-c", "cat <&3 >/dev/null"},
		"another program, and says so at length": {"/bin/sh", "-c",
			"cat <&3 >/dev/null; printf 'another program, ' >&4; printf 'and says so at length' >&4"},
	} {
		_, err := l.Start(launch.Command{Arguments: []string{"true"}, Directory: "/"})
		require.ErrorContains(t, err, want)
	}
}

// What a command is told and what it has of its launcher are its own: a variable that would change the launcher
// does not reach it, and none of the launcher's reaches the command.
func TestTheEnvironmentIsTheCommandsAlone(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	child, err := launchtest.Launcher().Start(launch.Command{Arguments: []string{"env"}, Directory: "/", Out: out,
		Environment: []string{"GODEBUG=inittrace=1", "PATH=/usr/bin:/bin"}, Err: out, Mark: "MARK=1"})
	require.NoError(t, err)
	<-child.Exited()
	require.Empty(t, child.Close())
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Equal(t, "GODEBUG=inittrace=1\nPATH=/usr/bin:/bin\n", string(text))
}

// A launcher whose daemon is gone starts nothing.
func TestALauncherWithoutItsDaemonStartsNothing(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	l := append(launch.Launcher{"/bin/sh", "-c", `"$0"; exit 0`}, // it is the launcher's parent
		launchtest.Launcher()...)
	_, err := l.Start(launch.Command{Arguments: []string{"touch", made}, Directory: "/",
		Environment: []string{"PATH=/usr/bin:/bin"}})
	require.EqualError(t, err, "starting a command: the daemon is gone")
	require.NoFileExists(t, made)
}
