package hold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/hold"
)

// proofOf ends a hold, and returns its proof.
func proofOf(t *testing.T, k *hold.Keeper, id string) string {
	t.Helper()
	k.End([]string{id})
	awaitChange(t, k)
	require.True(t, k.AwaitsLook(), "%v", k.Cleaned())
	k.Look(contract.NodeLook{Source: "simulated"}, day.Add(time.Second))
	awaitChange(t, k)
	for _, c := range k.Cleaned() {
		if c.AllocationID == id {
			require.Empty(t, c.Problem)
			return c.Proof
		}
	}
	require.Fail(t, "nothing is told of "+id)
	return ""
}

// sharedFolder makes a folder of a user in /dev/shm, which is removed when the test is over.
func sharedFolder(t *testing.T, uid uint32, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "forewarm-shared-")
	require.NoError(t, err)
	give(t, dir, uid, mode)
	t.Cleanup(func() { require.NoError(t, exec.Command("rm", "-rf", dir).Run()) })
	return dir
}

func give(t *testing.T, path string, uid uint32, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.Chown(path, int(uid), int(uid)))
	require.NoError(t, os.Chmod(path, mode))
}

// nest makes folders of a user that lie in each other, the first with a link to a target, and returns the deepest.
func nest(t *testing.T, top string, levels int, target string, uid uint32) *os.File {
	t.Helper()
	name := strings.Repeat("d", 60)
	at, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Symlinkat(target, at, "link"))
	require.NoError(t, unix.Fchownat(at, "link", int(uid), int(uid), unix.AT_SYMLINK_NOFOLLOW))
	for range levels {
		require.NoError(t, unix.Mkdirat(at, name, 0o777))
		below, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Fchmod(below, 0o777))
		require.NoError(t, unix.Fchown(below, int(uid), int(uid)))
		require.NoError(t, unix.Close(at))
		at = below
	}
	return os.NewFile(uintptr(at), "deepest")
}

// boundOpenFiles bounds how many files the test may have open at a time.
func boundOpenFiles(t *testing.T, most uint64) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: before.Max}))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
}

// Folders that lie in each other, deeper than a path or open files go, are removed, and looked through where they are
// another's; links lead nowhere.
func TestADeepFolderIsRemoved(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	kept := filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	own, others := sharedFolder(t, p.UID, 0o700), sharedFolder(t, uint32(os.Getuid()), 0o777)
	boundOpenFiles(t, 1_000)
	require.NoError(t, nest(t, p.Home, 4_200, dir, p.UID).Close())
	require.NoError(t, os.Chmod(p.Home, 0))
	require.NoError(t, nest(t, own, 4_200, dir, p.UID).Close())
	bottom := nest(t, others, 4_200, dir, uint32(os.Getuid()))
	defer func() { require.NoError(t, bottom.Close()) }()
	require.NoError(t, unix.Mkdirat(int(bottom.Fd()), "left", 0o700))
	require.NoError(t, unix.Fchownat(int(bottom.Fd()), "left", int(p.UID), int(p.GID), 0))

	require.Contains(t, proofOf(t, k, alc(1)), "0 processes ended")
	require.NoDirExists(t, p.Home)
	require.FileExists(t, kept)
	if p.OwnUser {
		require.NoDirExists(t, own)
		require.DirExists(t, others)
		require.ErrorIs(t, unix.Faccessat(int(bottom.Fd()), "left", unix.F_OK, 0), unix.ENOENT)
	}
}

// A holder that goes on exchanging a folder of a path for a link has root remove nothing elsewhere.
func TestAnExchangedFolderLeadsNowhere(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	dir := newDir(t)
	k := keeperIn(t, dir)
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	other, err := k.Open(hold.Hold{AllocationID: alc(2)})
	require.NoError(t, err)
	victim, shared := sharedFolder(t, 0, 0o700), sharedFolder(t, other.UID, 0o777)
	folder, link := filepath.Join(shared, "folder"), filepath.Join(shared, "link")
	require.NoError(t, os.Mkdir(folder, 0o700))
	give(t, folder, other.UID, 0o777)
	require.NoError(t, os.Symlink("../"+filepath.Base(victim), link))
	const traps = 20
	for n := range traps {
		name := strconv.Itoa(n)
		for _, in := range []string{victim, folder} {
			require.NoError(t, os.WriteFile(filepath.Join(in, name+"-file"), nil, 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(in, name, strings.Repeat("d/", 220)), 0o700))
		}
		give(t, filepath.Join(folder, name), p.UID, 0o700)
		give(t, filepath.Join(folder, name+"-file"), p.UID, 0o600)
	}
	stop, exchanging := make(chan struct{}), sync.WaitGroup{}
	exchanging.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	k.End([]string{alc(1)})
	awaitChange(t, k)
	close(stop)
	exchanging.Wait()
	entries, err := os.ReadDir(victim)
	require.NoError(t, err)
	require.Len(t, entries, 2*traps, "nothing of the victim's is gone")
}

// What an earlier holder's program leaves after the end of its hold, as when another one runs it, is found with the
// next end, in folders that are closed by now too. What is not this daemon's stays.
func TestWhatAnEarlierHolderLeftSinceIsRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	dir := newDir(t)
	k := keeperIn(t, dir)
	var places []hold.Place
	for _, id := range []string{alc(1), alc(2), alc(3), alc(4)} {
		p, err := k.Open(hold.Hold{AllocationID: id})
		require.NoError(t, err)
		places = append(places, p)
	}
	earlier, stays := places[0], places[1]
	proofOf(t, k, alc(1))
	k.End(nil) // the server has heard it
	closed := sharedFolder(t, stays.UID, 0o700)
	strangers := filepath.Join(sharedFolder(t, 0, 0o777), "file")
	require.NoError(t, os.WriteFile(strangers, nil, 0o600))
	give(t, strangers, places[3].UID+1, 0o600) // of another daemon of the machine
	begin(t, stays, "mkdir sub; touch own sub/own")
	for _, id := range []string{alc(3), alc(4)} {
		left := []string{filepath.Join(closed, "file"), filepath.Join(stays.Home, "file"),
			filepath.Join(stays.Home, "sub/file")}
		for _, path := range left {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			give(t, path, earlier.UID, 0o600)
		}
		queue := earlier
		queue.Home = "/tmp"
		begin(t, queue, "ipcmk -Q")
		proofOf(t, k, id)
		for _, path := range left {
			require.NoFileExists(t, path)
		}
		queues, err := os.ReadFile("/proc/sysvipc/msg")
		require.NoError(t, err)
		require.NotContains(t, string(queues), strconv.FormatUint(uint64(earlier.UID), 10))
		require.FileExists(t, filepath.Join(stays.Home, "own"))
		require.FileExists(t, filepath.Join(stays.Home, "sub/own"))
		require.FileExists(t, strangers)
		k = keeperIn(t, dir) // a daemon that begins again
	}
	k.EndAll()
}

// A folder of a holder's in which others have files stays for them, with its mode and all that is theirs, however deep;
// nothing of whoever made it owns it any more, and it goes once the last has left.
func TestAFolderWithFilesOfOthersIsKeptForThem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	k := keeperIn(t, newDir(t))
	first, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	other, err := k.Open(hold.Hold{AllocationID: alc(2)})
	require.NoError(t, err)
	shared := sharedFolder(t, first.UID, 0o777|os.ModeSticky)
	inside, empty := filepath.Join(shared, "closed", "since"), filepath.Join(shared, "closed", "empty")
	for _, dir := range []string{filepath.Dir(inside), inside, empty} {
		require.NoError(t, os.Mkdir(dir, 0o700))
		give(t, dir, first.UID, 0o750)
	}
	own := []string{filepath.Join(shared, "own"), filepath.Join(inside, "own")}
	theirs := []string{filepath.Join(shared, "results"), filepath.Join(inside, "results")}
	for i := range own {
		require.NoError(t, os.WriteFile(own[i], nil, 0o600))
		give(t, own[i], first.UID, 0o600)
		require.NoError(t, os.WriteFile(theirs[i], []byte("figures"), 0o600))
		give(t, theirs[i], other.UID, 0o600)
	}
	proofOf(t, k, alc(1))
	for i := range own {
		require.NoFileExists(t, own[i])
		require.FileExists(t, theirs[i])
	}
	require.NoDirExists(t, empty)
	for path, mode := range map[string]os.FileMode{shared: 0o777 | os.ModeSticky, inside: 0o750} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode|os.ModeDir, info.Mode())
		s, ok := info.Sys().(*syscall.Stat_t)
		require.True(t, ok)
		require.Zero(t, s.Uid)
		require.NotEqual(t, first.GID, s.Gid)
	}
	proofOf(t, k, alc(2))
	require.NoDirExists(t, shared)
}

// Shared memory that somebody else still has goes when they let go of it, and holds up no proof.
func TestSharedMemoryInUseIsRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	k := keeperIn(t, newDir(t))
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	made := strings.Fields(begin(t, p, "ipcmk -M 4096 -p 0666"))
	id, err := strconv.Atoi(made[len(made)-1])
	require.NoError(t, err)
	attached, err := unix.SysvShmAttach(id, 0, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.SysvShmDetach(attached)) }()
	require.Contains(t, proofOf(t, k, alc(1)), "1 file removed")
}

// A folder that its holder removes while it is looked through has nothing left: that is no reason to distrust the node.
func TestAFolderThatIsRemovedMeanwhileIsEmpty(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, os.Remove(dir))
	require.NoError(t, hold.EachName(t.Context(), f, func(name string) { t.Error(name) }))
}
