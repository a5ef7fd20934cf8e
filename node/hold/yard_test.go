package hold_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/hold"
)

// open2 opens two holds: one that is to end, and one of a holder who stays.
func open2(t *testing.T, k *hold.Keeper) (ends, stays hold.Place) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	ends, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	stays, err = k.Open(hold.Hold{AllocationID: alc(2)})
	require.NoError(t, err)
	return ends, stays
}

// leaveFile makes a file of a user.
func leaveFile(t *testing.T, path string, uid uint32) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	give(t, path, uid, 0o600)
	return path
}

// inodeOf is the number of a file.
func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var s unix.Stat_t
	require.NoError(t, unix.Lstat(path, &s))
	return s.Ino
}

// deep makes folders of somebody in a folder, below which open files are not kept, and returns two of these, the first
// with a folder that can be moved to the other, which has a file.
func deep(t *testing.T, top string, uid, gid int) (here, there string) {
	t.Helper()
	path := top
	for range 140 {
		path = filepath.Join(path, "d")
		require.NoError(t, os.Mkdir(path, 0o777))
		require.NoError(t, os.Chown(path, uid, gid))
	}
	here, there = filepath.Join(path, "here"), filepath.Join(path, "there")
	for _, dir := range []string{here, there, filepath.Join(here, "moves"), filepath.Join(here, "moves", "in")} {
		require.NoError(t, os.Mkdir(dir, 0o777))
		require.NoError(t, os.Chown(dir, uid, gid))
	}
	leaveFile(t, filepath.Join(here, "moves", "in", "file"), uint32(uid))
	return here, there
}

// Folders that their holder, or whoever has files in one that was kept, moves whenever somebody is in there are left;
// the walk goes on with all others.
func TestFoldersThatMoveAllTheTimeAreLeft(t *testing.T) {
	ends, stays := open2(t, keeperIn(t, newDir(t)))
	for owner, gid := range map[int]int{int(stays.UID): int(stays.GID), 0: hold.KeptGroup} {
		top := sharedFolder(t, 0, 0o777)
		yard := filepath.Join(top, "yard")
		require.NoError(t, os.Mkdir(yard, 0o777))
		require.NoError(t, os.Chown(yard, owner, gid))
		here, there := deep(t, yard, owner, gid)
		file := inodeOf(t, filepath.Join(here, "moves", "in", "file"))
		files := []string{leaveFile(t, filepath.Join(top, "file"), ends.UID)}
		for _, name := range []string{"a", "z"} {
			dir := filepath.Join(top, name)
			require.NoError(t, os.Mkdir(dir, 0o700))
			give(t, dir, stays.UID, 0o777)
			files = append(files, leaveFile(t, filepath.Join(dir, "file"), ends.UID))
		}
		moved := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		found, left, err := hold.ClearShared(ctx, top, func(s unix.Stat_t) bool {
			if s.Ino == file {
				moved++
				require.NoError(t, os.Rename(filepath.Join(here, "moves"), filepath.Join(there, "moves")))
				here, there = there, here
			}
			return s.Uid == ends.UID
		})
		require.NoError(t, err)
		require.True(t, found)
		require.Positive(t, moved)
		require.Len(t, left, 1)
		require.Contains(t, []uint32{stays.UID, hold.KeptGroup}, left[0])
		for _, path := range files {
			require.NoFileExists(t, path)
		}
	}
}

// What somebody moves in a folder of another holder before it can be removed has nobody look for ever.
func TestWhatMovesWithinAFolderIsNotLookedForAgain(t *testing.T) {
	ends, stays := open2(t, keeperIn(t, newDir(t)))
	yard := sharedFolder(t, stays.UID, 0o777)
	here, there := filepath.Join(yard, "here"), filepath.Join(yard, "there")
	require.NoError(t, os.Mkdir(here, 0o700))
	give(t, here, ends.UID, 0o777)
	file := inodeOf(t, leaveFile(t, filepath.Join(here, "file"), stays.UID))
	found, left, err := hold.ClearShared(t.Context(), filepath.Dir(yard), func(s unix.Stat_t) bool {
		if s.Ino == file {
			require.NoError(t, os.Rename(here, there))
			here, there = there, here
		}
		return s.Uid == ends.UID
	})
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, []uint32{stays.UID}, left)
}

// A holder who moves folders all the time, while another hold ends, has that one's end fail no more than its own.
func TestAHolderWhoMovesFoldersHoldsUpNoEnd(t *testing.T) {
	k := keeperIn(t, newDir(t))
	ends, stays := open2(t, k)
	yard := sharedFolder(t, stays.UID, 0o777)
	here, there := deep(t, yard, int(stays.UID), int(stays.GID))
	within := leaveFile(t, filepath.Join(here, "moves", "in", "left"), ends.UID)
	beside := leaveFile(t, filepath.Join(sharedFolder(t, 0, 0o777), "left"), ends.UID)
	stop, moving := make(chan struct{}), sync.WaitGroup{}
	moving.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(filepath.Join(here, "moves"), filepath.Join(there, "moves"))
				here, there = there, here
			}
		}
	})
	proof := proofOf(t, k, alc(1))
	close(stop)
	moving.Wait()
	require.Contains(t, proof, "removed in ")
	require.NoFileExists(t, beside)
	proofOf(t, k, alc(2))
	require.NoFileExists(t, within)
	require.NoDirExists(t, yard)
}

// A holder who has many files has nobody else's end look at all of them; its own end does.
func TestAHolderWithManyFilesHoldsUpNoEnd(t *testing.T) {
	defer hold.BoundLooking(100)()
	k := keeperIn(t, newDir(t))
	ends, stays := open2(t, k)
	many, few := crowd(t, stays, 101), crowd(t, stays, 0)
	left := leaveFile(t, filepath.Join(many, "folder", "left"), ends.UID)
	beside := leaveFile(t, filepath.Join(sharedFolder(t, ends.UID, 0o777), "left"), ends.UID)
	require.Contains(t, proofOf(t, k, alc(1)), "; folders of user") // other tests may have holders, too
	require.NoFileExists(t, beside)
	require.FileExists(t, left)
	require.DirExists(t, few)
	proofOf(t, k, alc(2))
	for _, dir := range []string{many, few} {
		require.NoDirExists(t, dir)
	}
}

// crowd makes a folder of a holder's with so many files, and a folder to which others may write.
func crowd(t *testing.T, p hold.Place, files int) (dir string) {
	t.Helper()
	dir = sharedFolder(t, p.UID, 0o777)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	give(t, filepath.Join(dir, "folder"), p.UID, 0o777)
	for n := range files {
		leaveFile(t, filepath.Join(dir, strconv.Itoa(n)), p.UID)
	}
	return dir
}

// Where whoever has many files is ending already, nothing of the other one is left in them either.
func TestNothingIsLeftWhereBothEnd(t *testing.T) {
	defer hold.BoundLooking(100)()
	k := keeperIn(t, newDir(t))
	k.Grace = time.Minute
	ends, stays := open2(t, k)
	left := leaveFile(t, filepath.Join(crowd(t, stays, 101), "folder", "left"), ends.UID)
	theirs := leaveFile(t, filepath.Join(crowd(t, ends, 101), "folder", "left"), stays.UID)
	asked := filepath.Join(newDir(t), "asked")
	require.NoError(t, unix.Mkfifo(asked, 0o600))
	give(t, asked, stays.UID, 0o600)
	pid, err := strconv.Atoi(begin(t, stays,
		"(trap 'echo >"+asked+"' TERM; while :; do sleep 0.01; done) >/dev/null 2>&1 & echo $!"))
	require.NoError(t, err)
	require.False(t, hold.HasLeft(k, stays.UID, alc(1)), "that one's end is to come")
	k.End([]string{alc(2)})
	_, err = os.ReadFile(asked)
	require.NoError(t, err, "its end has begun, and waits for the process")
	k.End([]string{alc(1), alc(2)})
	awaitChange(t, k) // the other one is over
	require.FileExists(t, left)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	k.EndAll()
	require.NoFileExists(t, left)
	require.NoFileExists(t, theirs)
	require.True(t, hold.HasLeft(k, stays.UID, alc(1)), "nobody else would look there any more")
	require.False(t, hold.HasLeft(k, stays.UID+5, alc(1)), "of another daemon")
}

func TestAProofSaysWhoseFoldersWereLeft(t *testing.T) {
	t.Parallel()
	for want, left := range map[string][]uint32{
		"": nil,
		"; folders of user 1900000001 were left for the end of its hold":                        {1900000001},
		"; folders of users 1900000001 to 1900000009 (2) were left for the ends of their holds": {1900000009, 1900000001},
		"; folders that others have moved all the time were left for the next end":              {hold.KeptGroup},
		"; folders of user 1900000001 were left for the end of its hold" +
			"; folders that others have moved all the time were left for the next end": {hold.KeptGroup, 1900000001},
	} {
		require.Equal(t, want, hold.DescribeLeft(left...))
	}
}
