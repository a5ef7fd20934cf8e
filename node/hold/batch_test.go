package hold_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
)

// Holds that end at the same time, of which nothing runs, are cleared together: what each of them left is gone, what
// others have stays.
func TestHoldsThatEndTogetherAreClearedTogether(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	now := clock.NewManual(day)
	k := keeperAt(t, newDir(t), now)
	all := []string{alc(1), alc(2), alc(3)}
	var places []hold.Place
	for _, id := range append(all, alc(4)) {
		p, err := k.Open(hold.Hold{AllocationID: id})
		require.NoError(t, err)
		if p.Cgroup == "" {
			t.Skip("holds have no cgroups here")
		}
		places = append(places, p)
	}
	shared := sharedFolder(t, 0, 0o777)
	var left []string
	for _, p := range places {
		path := filepath.Join(shared, filepath.Base(p.Home))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		give(t, path, p.UID, 0o600)
		begin(t, p, "echo x >own; ipcmk -Q >/dev/null")
		left = append(left, path)
	}
	for _, told := range endAll(t, k, now, all...) {
		require.Empty(t, told.Problem)
		require.Contains(t, told.Proof, "0 processes ended, 1 file of its own and 6 in shared folders of 3 holds removed in ")
	}
	for i, path := range left[:3] {
		require.NoFileExists(t, path)
		require.NoDirExists(t, places[i].Home)
		require.NoDirExists(t, places[i].Cgroup)
	}
	require.FileExists(t, left[3])
	require.FileExists(t, filepath.Join(places[3].Home, "own"))
	require.NoError(t, os.Remove(left[3]))
	k.EndAll()
}

// One whose work goes on holds up nobody, and is ended for itself.
func TestAHoldThatIsBusyHoldsUpNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	now := clock.NewManual(day)
	k := keeperAt(t, newDir(t), now)
	var pid string
	for _, id := range []string{alc(1), alc(2)} {
		p, err := k.Open(hold.Hold{AllocationID: id})
		require.NoError(t, err)
		if id == alc(2) {
			pid = begin(t, p, "trap '' TERM; sleep 1000 >/dev/null 2>&1 & echo $!")
		}
	}
	k.End([]string{alc(1), alc(2)})
	require.Eventually(t, func() bool {
		now.Advance(time.Second)
		k.Look(gpus(0, 1), now.Now())
		return len(k.Cleaned()) == 2
	}, time.Minute, 10*time.Millisecond)
	told := k.Cleaned()
	require.Contains(t, told[0].Proof, "0 processes ended")
	require.Contains(t, told[1].Proof, "1 process ended")
	require.False(t, alive(pid))
}

// A process of its user that is not in its cgroup, and was started by another program, is ended too.
func TestAProcessElsewhereIsNotOverlooked(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	now := clock.NewManual(day)
	k := keeperAt(t, newDir(t), now)
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	elsewhere := exec.Command("sleep", "1000")
	elsewhere.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.UID, Gid: p.GID}}
	require.NoError(t, elsewhere.Start())
	ended := make(chan error, 1)
	go func() { ended <- elsewhere.Wait() }()
	told := endAll(t, k, now, alc(1))
	require.Len(t, told, 1)
	require.Contains(t, told[0].Proof, "1 process ended")
	require.ErrorContains(t, <-ended, "signal: ")
}

// What changes is in the journal, and a keeper that begins again knows it; a damaged one is refused.
func TestTheJournalContinuesTheBook(t *testing.T) {
	dir, now := newDir(t), clock.NewManual(day)
	k := keeperAt(t, dir, now)
	for _, id := range []string{alc(1), alc(2), alc(3)} {
		_, err := k.Open(hold.Hold{AllocationID: id})
		require.NoError(t, err)
	}
	endAll(t, k, now, alc(2))
	book, err := os.ReadFile(filepath.Join(dir, "book.json"))
	require.NoError(t, err)
	require.NotContains(t, string(book), alc(3), "the book is as it was")
	again := keeperAt(t, dir, now)
	require.Equal(t, []string{alc(1), alc(3)}, again.List())
	_, err = again.Open(hold.Hold{AllocationID: alc(4)})
	require.NoError(t, err)
	require.Equal(t, []string{alc(1), alc(3), alc(4)}, keeperAt(t, dir, now).List())
	again.EndAll()

	journal := filepath.Join(dir, "book.json.journal")
	require.NoError(t, os.WriteFile(journal, []byte("{\"holds\":{\"alc_\n{}\n"), 0o600))
	_, err = hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: now, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "is damaged")
}

// The machine ends after the book was written anew and before the journal was: that one says what was before.
func TestAJournalOfAnEarlierBookIsOver(t *testing.T) {
	dir, now := newDir(t), clock.NewManual(day)
	k := keeperAt(t, dir, now)
	for n := 1; n <= 2; n++ {
		_, err := k.Open(hold.Hold{AllocationID: alc(n)})
		require.NoError(t, err)
	}
	journal := filepath.Join(dir, "book.json.journal")
	earlier, err := os.ReadFile(journal) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.Contains(t, string(earlier), alc(2))

	k = keeperAt(t, dir, now)
	p3, err := k.Open(hold.Hold{AllocationID: alc(3)}) // with which it writes the book
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(journal, earlier, 0o600))
	k = keeperAt(t, dir, now)
	require.Equal(t, []string{alc(1), alc(2), alc(3)}, k.List())
	p4, err := k.Open(hold.Hold{AllocationID: alc(4)})
	require.NoError(t, err)
	require.True(t, !p3.OwnUser || p3.UID != p4.UID, "no user is handed out twice")
	k.EndAll()
}

// A keeper that comes again in the place of a later version goes on with what it knows of that one's book.
func TestTheBookOfALaterVersion(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	_, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	path := filepath.Join(dir, "book.json")
	text, err := os.ReadFile(path) //nolint:gosec // the test's own
	require.NoError(t, err)
	later := strings.NewReplacer(`"first_user"`, `"later":1,"first_user"`, `"phase"`, `"later":[2],"phase"`)
	require.NoError(t, os.WriteFile(path, []byte(later.Replace(string(text))), 0o600))
	require.NoError(t, hold.CheckBook(path))
	next := keeperIn(t, dir)
	require.Equal(t, []string{alc(1)}, next.List())
	next.EndAll()
}
