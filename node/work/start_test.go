package work_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
	"github.com/forewarm/forewarm/node/work"
)

// ownPlace is a place whose user is no other's.
func ownPlace(t *testing.T, uid uint32) hold.Place {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may become another user")
	}
	place := newPlace(t)
	place.UID, place.GID, place.OwnUser, place.Home = uid, uid, true, "/"
	return place
}

// newOpenDir is a folder that users of holds can look into.
func newOpenDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-work-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // as said
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// A holder who has the kernel wait with the start of a program, or stops it before it has begun, holds up that
// session alone, and neither others nor the daemon's memory.
func TestAStartThatHangsHoldsUpItsSessionOnly(t *testing.T) {
	mine, others := ownPlace(t, 1_900_000_002), ownPlace(t, 1_900_000_003)
	program, waits := launchtest.NewLeased(t, newOpenDir(t))
	began := time.Now()
	hanging := newPair()
	done := make(chan session.End, 1)
	go func() { done <- carry(t.Context(), patient, mine, work.Command{Arguments: []string{program}}, hanging) }()
	<-waits
	require.Equal(t, ran{map[session.Channel]string{}, session.End{}}, run(t, mine, shell("kill -s STOP -- -1")))
	require.Equal(t, "other\n", run(t, others, shell("echo other")).out[session.Stdout])
	runtime.GC() // it waits for all threads
	require.Empty(t, done)
	require.Less(t, time.Since(began), 30*time.Second, "the kernel waits no longer than 45")
	hanging.end()
	end := <-done
	require.Contains(t, end.Reason, "hung up")
	require.Equal(t, "HUP", end.Signal)
}

// A program that is another user's gives its rights to none that a holder starts.
func TestACommandGetsNoRightsFromSetUserIDPrograms(t *testing.T) {
	require.Contains(t, run(t, newPlace(t), shell("cat /proc/self/status")).out[session.Stdout], "NoNewPrivs:\t1\n")
	place := ownPlace(t, 1_900_000_002)
	id := newOpenDir(t) + "/id"
	program, err := os.ReadFile("/usr/bin/id")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(id, program, 0o755)) //nolint:gosec // anyone may start it
	require.NoError(t, os.Chmod(id, 0o755|os.ModeSetuid))
	require.Equal(t, "1900000002\n", run(t, place, shell(id+" -u")).out[session.Stdout])
}

// The daemon's death hangs a command up, though its user was changed on the way.
func TestACommandIsToldOfTheDaemonsDeath(t *testing.T) {
	program := newOpenDir(t) + "/deathsignal"
	build := exec.Command("go", "build", "-o", program, "./testdata/deathsignal")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "SIGHUP <nil>\n", run(t, ownPlace(t, 1_900_000_002),
		work.Command{Arguments: []string{program}}).out[session.Stdout])
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	dir := newOpenDir(t)
	private, script := dir+"/private", dir+"/script"
	require.NoError(t, os.Mkdir(private, 0o700))
	require.NoError(t, os.WriteFile(private+"/tool", nil, 0o755)) //nolint:gosec // its folder is closed
	require.NoError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755))
	for want, c := range map[string]work.Command{
		"starting no-such-program: there is no such program in /nowhere:/bin": {Arguments: []string{"no-such-program"},
			Environment: map[string]string{"PATH": "/nowhere:/bin"}},
		"starting tool: there is no such program in " + private + "; the user of the allocation cannot pass the folder " +
			private + " (mode 0700)": {Arguments: []string{"tool"},
			Environment: map[string]string{"PATH": private}},
		"starting : there is no such program in /bin": {Arguments: []string{""},
			Environment: map[string]string{"PATH": "/bin"}},
		"starting ./no-such-program: no such file or directory": {Arguments: []string{"./no-such-program"}},
		"starting /etc/passwd: permission denied":               {Arguments: []string{"/etc/passwd"}},
		"starting " + script + ": no such file or directory":    {Arguments: []string{script}},
		"starting true in the folder /no/such/folder: no such file or directory": {Arguments: []string{"true"},
			Directory: "/no/such/folder"},
		"starting true in the folder " + private + ": the user of the allocation cannot pass the folder " + private +
			" (mode 0700)": {Arguments: []string{"true"}, Directory: private},
		"starting " + private + "/tool: the user of the allocation cannot pass the folder " + private +
			" (mode 0700)": {Arguments: []string{private + "/tool"}},
	} {
		got := run(t, ownPlace(t, 1_900_000_002), c)
		require.Equal(t, ran{map[session.Channel]string{}, session.End{Code: session.NotStarted, Reason: want}}, got)
	}
}

// A holder that cannot get to its own folder hears which one is closed, and who can open it.
func TestAClosedFolderOfHoldsIsNamed(t *testing.T) {
	dir := newOpenDir(t)
	require.NoError(t, os.Mkdir(dir+"/private", 0o700))
	place := ownPlace(t, 1_900_000_002)
	place.Home = dir + "/private/holds/alc_1"
	require.NoError(t, os.MkdirAll(place.Home, 0o755)) //nolint:gosec // what is above it is closed
	require.NoError(t, os.Chown(place.Home, 1_900_000_002, 1_900_000_002))
	want := " in the folder " + place.Home + ": the user of the allocation cannot pass the folder " + dir +
		"/private (mode 0700): an operator opens it on the node with chmod o+x, or chooses another hold_dir"
	for _, program := range []string{"true", "no-such-program", "./mine"} {
		got := run(t, place, work.Command{Arguments: []string{program}})
		require.Equal(t, session.End{Code: session.NotStarted, Reason: "starting " + program + want}, got.end)
	}
}

// What a holder asks for may be as long as the kernel takes, and what it takes not is said.
func TestLongArguments(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	c := shell("echo ${#0}")
	c.Arguments = append(c.Arguments, long)
	require.Equal(t, "100000\n", run(t, newPlace(t), c).out[session.Stdout])
	c.Arguments[3] = long + long
	end := run(t, newPlace(t), c).end
	require.Equal(t, session.End{Code: session.NotStarted, Reason: "starting sh: argument list too long"}, end)
	end = run(t, newPlace(t), work.Command{Arguments: []string{"./" + long}}).end
	require.Equal(t, session.NotStarted, end.Code)
	require.Contains(t, end.Reason, "starting ./xxx")
}
