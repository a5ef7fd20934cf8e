package jobs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// What a job writes while the server is away is sent later, and once; the job is ended for the server
// only then.
func TestOutputWaitsForTheServer(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("pipe")
	n.answer(0, order("seq 1 20000; cat "+pipe+"; seq 1 20000 >&2; echo end"))
	n.await(func() bool { return strings.HasSuffix(n.server.got(first, ""), "20000\n") })
	n.server.set(func() { n.server.away = errAway })
	require.NoError(t, os.WriteFile(pipe, nil, 0))
	n.await(func() bool { return n.runnerOf(first) == 0 })
	n.begin()
	for range 2 { // it was away for an hour
		n.answer(time.Hour)
		require.Equal(t, contract.JobRankRunning, n.report(first).State)
	}
	n.server.set(func() { n.server.away = nil })
	n.answer(time.Second)
	require.Zero(t, n.awaitEnd(first))
	require.Len(t, n.server.got(first, "stderr"), 108894)
	require.Len(t, n.server.got(first, "stdout"), 108894+len("end\n"))
	left, err := filepath.Glob(n.folder(first) + "/output-*")
	require.NoError(t, err)
	require.Empty(t, left, "what is stored is kept no longer")
}

// A job whose output the server does not take is over for it after a while, and its output is still
// tried to send.
func TestOutputThatIsNotTakenIsGivenUp(t *testing.T) {
	n := newNode(t)
	n.server.set(func() { n.server.away = errors.New("the disk is full") })
	n.answer(0, order("echo up"))
	n.await(func() bool { return n.report(first).RanSeconds > 0 && n.runnerOf(first) == 0 })
	n.begin()
	heartbeats := 0
	n.await(func() bool {
		n.answer(10 * time.Second)
		heartbeats++
		return n.report(first).State == contract.JobRankEnded
	})
	require.GreaterOrEqual(t, heartbeats, 3)
	require.Empty(t, n.server.pieces)
	n.server.set(func() { n.server.away = nil })
	n.answer(time.Second)
	n.await(func() bool { return n.server.got(first, "") == "up\n" })
}

// A job that writes more than can be kept is not held up; what was dropped is counted in its place.
func TestOutputBeyondTheBound(t *testing.T) {
	n := newNode(t)
	n.server.set(func() { n.server.away = errAway })
	pipe := n.newPipe("pipe")
	const written = 80_000_000
	n.answer(0, order("head -c 80000000 /dev/zero; echo full >"+pipe+"; cat "+pipe+" >/dev/null; echo end"))
	_, err := os.ReadFile(pipe)
	require.NoError(t, err, "it has written all")
	size := int64(0)
	all, err := filepath.Glob(n.folder(first) + "/output-*")
	require.NoError(t, err)
	for _, file := range all {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
	}
	require.InDelta(t, 64<<20, size, 1<<20)
	n.server.set(func() { n.server.away = nil })
	n.answer(time.Second)
	n.await(func() bool {
		left, err := filepath.Glob(n.folder(first) + "/output-*")
		return err == nil && len(left) == 1
	})
	require.NoError(t, os.WriteFile(pipe, nil, 0))
	require.Zero(t, n.awaitEnd(first))
	kept := strings.Count(n.server.got(first, "stdout"), "\x00")
	require.InDelta(t, 68<<20, kept, 1<<20)
	require.Equal(t, "[forewarm: "+strconv.Itoa(written-kept)+" bytes of output were dropped here: its node keeps 64 MiB "+
		"that could not be sent]\n", n.server.got(first, "stderr"))
	require.True(t, strings.HasSuffix(n.server.got(first, ""), "end\n"), "what is written later is kept again")
}

// Of a job that fails in a flood of output, the end is kept, where the reason stands.
func TestTheEndOfAFloodIsKept(t *testing.T) {
	n := newNode(t)
	n.server.set(func() { n.server.away = errAway })
	n.answer(0, order("head -c 80000000 /dev/zero; echo Traceback >&2; exit 3"))
	n.await(func() bool { return n.report(first).RanSeconds > 0 && n.runnerOf(first) == 0 })
	n.server.set(func() { n.server.away = nil })
	n.answer(time.Second)
	require.Equal(t, 3, n.awaitEnd(first).ExitCode)
	require.Regexp(t, `^\[forewarm: \d+ bytes of output were dropped here: .*\]\nTraceback\n$`,
		n.server.got(first, "stderr"))
	require.InDelta(t, 68<<20, len(n.server.got(first, "stdout")), 1<<20)
}

// What the server has lost is sent again.
func TestTheServersOffsetIsTrusted(t *testing.T) {
	n := newNode(t)
	n.server.set(func() { n.server.lose = 3 })
	pipe := n.newPipe("pipe")
	n.answer(0, order("echo 123456789; cat "+pipe))
	n.await(func() bool { return n.server.got(first, "") == "123456789\n" })
	n.server.set(func() { n.server.has[first] += 4 }) // it does not want these
	require.NoError(t, os.WriteFile(pipe, []byte("abcdef\n"), 0))
	require.Zero(t, n.awaitEnd(first))
	require.Equal(t, "123456789\nef\n", n.server.got(first, ""))
}

// A job that writes little at a time is sent in few parts.
func TestManySmallWritesAreFewPieces(t *testing.T) {
	n := newNode(t)
	n.server.set(func() { n.server.away = errAway })
	n.answer(0, order("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"))
	n.await(func() bool { return n.report(first).RanSeconds > 0 && n.runnerOf(first) == 0 })
	n.server.set(func() { n.server.away = nil })
	n.answer(time.Second)
	require.Zero(t, n.awaitEnd(first))
	require.Len(t, n.server.got(first, "stdout"), 23890)
	require.Less(t, n.server.parts, 5)
}

// While a job goes on writing, it is sent now and then, and not each time that it writes.
func TestAJobThatGoesOnWritingIsSentNowAndThen(t *testing.T) {
	n := newNode(t)
	enough := filepath.Join(n.dir, "enough")
	n.answer(0, order("while [ ! -e "+enough+" ]; do echo line; sleep 0.02; done"))
	sent := func() (parts int) {
		n.server.set(func() { parts = n.server.parts })
		return parts
	}
	n.await(func() bool { return sent() >= 12 })
	require.NoError(t, os.WriteFile(enough, nil, 0o600))
	require.Zero(t, n.awaitEnd(first))
	require.LessOrEqual(t, float64(sent()), n.report(first).RanSeconds/0.2+5, "a look is five in a second at most")
}
