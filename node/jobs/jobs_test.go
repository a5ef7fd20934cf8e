package jobs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/jobs"
)

var first = contract.JobKey{JobID: "job_1", Attempt: 1}

func TestAJobEndsWithItsOutputAndItsCode(t *testing.T) {
	n := newNode(t)
	o := order("echo out; sleep 0.2; echo err >&2; sleep 0.2; cat; exit 7")
	o.Input = []byte(strings.Repeat("input\n", 20_000)) // more than a pipe takes
	require.Equal(t, contract.JobReport{ExitCode: 7}, n.run(o))
	require.Equal(t, "out\nerr\n"+string(o.Input), n.server.got(first, ""))
	require.Equal(t, "err\n", n.server.got(first, "stderr"))
	r := n.report(first)
	require.Equal(t, 2, r.Rank)
	require.Greater(t, r.RanSeconds, 0.4)
	n.await(func() bool { return n.report(first).EndedSecondsAgo > 1 })
	require.Equal(t, r.RanSeconds, n.report(first).RanSeconds, "it was over") //nolint:testifylint // the same float
	for i, p := range n.server.pieces[first] {
		require.WithinDuration(t, time.Now(), p.At, time.Minute)
		require.True(t, i == 0 || !p.At.Before(n.server.pieces[first][i-1].At))
	}
}

func TestHowJobsEnd(t *testing.T) {
	n, attempts := newNode(t), 0
	for script, want := range map[string]contract.JobReport{
		"cat":               {},
		"kill -SEGV $$":     {ExitCode: 139, Signal: "SEGV"},
		"kill -KILL 0":      {ExitCode: 137, Signal: "KILL"},
		"sleep 1000 & exit": {Reason: "processes that it started still hold its output open"},
	} {
		o := order(script)
		attempts++
		o.Attempt = attempts
		require.Equal(t, want, n.run(o), script)
	}
}

// A job that has its allocation alone ends the hold with it, so that both are told at once; another one's goes on.
func TestAJobEndsItsHold(t *testing.T) {
	n := newNode(t)
	require.Zero(t, n.run(order("true")))
	require.Equal(t, []string{order("").AllocationID}, n.holds.List())
	o := order("true")
	o.Attempt, o.EndsHold = 2, true
	require.Zero(t, n.run(o))
	n.await(func() bool { return len(n.holds.List()) == 0 })
}

// A job finds its hold's environment, which goes before what it asks for, and its own names.
func TestTheEnvironmentOfAJob(t *testing.T) {
	n := newNode(t)
	o := order("env; pwd")
	o.Environment = map[string]string{"MINE": "1", "FOREWARM_JOB_ID": "another", "CUDA_VISIBLE_DEVICES": "GPU-2"}
	o.HoldEnvironment = map[string]string{"MASTER_ADDR": "10.0.0.1"}
	require.Zero(t, n.run(o))
	require.Subset(t, strings.Split(n.server.got(first, "stdout"), "\n"), []string{"MINE=1", "FOREWARM_JOB_ID=job_1",
		"FOREWARM_JOB_ATTEMPT=1", "FOREWARM_JOB_RANK=2", "CUDA_VISIBLE_DEVICES=GPU-1", "FOREWARM_GPU_INDICES=3",
		"MASTER_ADDR=10.0.0.1", filepath.Join(n.dir, "holds", alc(1))})
}

// What cannot be started says why, also to a daemon that begins again.
func TestWhatIsNotStartedSaysWhy(t *testing.T) {
	n := newNode(t)
	n.holds.End([]string{"alc_over"})
	<-n.holds.Changed()
	all := map[string]contract.JobOrder{}
	for want, change := range map[string]func(o *contract.JobOrder){
		"starting no-such-program: there is no such program in": func(o *contract.JobOrder) {
			o.Command = []string{"no-such-program"}
		},
		"starting sh in the folder /no/such/folder: no such file or directory": func(o *contract.JobOrder) {
			o.Directory = "/no/such/folder"
		},
		"the order names no command": func(o *contract.JobOrder) { o.Command = nil },
		"opening the hold of allocation alc_over: the allocation has ended on this node": func(o *contract.JobOrder) {
			o.AllocationID = "alc_over"
		},
	} {
		o := order("echo no")
		o.Attempt = len(all) + 1
		change(&o)
		all[want] = o
		n.answer(0, o)
	}
	for range 2 {
		for want, o := range all {
			got := n.awaitEnd(o.JobKey)
			require.Equal(t, contract.JobNotStarted, got.Code, want)
			require.Contains(t, got.Reason, want)
		}
		n.begin()
	}
	require.Empty(t, n.server.pieces)
}

func TestANodeThatTakesNoJobsSaysWhy(t *testing.T) {
	n := newNode(t)
	n.keeper.Close()
	n.open(jobs.Config{Refusal: "the node takes no jobs: its daemon has sessions: false"})
	require.Equal(t, contract.JobReport{Code: "not_started",
		Reason: "the node takes no jobs: its daemon has sessions: false"}, n.run(order("echo no")))
}

// A job that cannot be written down is told to be lost, and not kept for ever; it may be ordered again.
func TestANodeThatCannotWriteSaysSo(t *testing.T) {
	n := newNode(t)
	inTheWay := filepath.Join(n.dir, "jobs", "job_1-1")
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "something"), 0o700))
	got := n.run(order("echo no"))
	require.Equal(t, contract.JobLost, got.Code)
	require.Contains(t, got.Reason, "its node cannot write down what it runs: making the folder of a job: ")
	require.Empty(t, n.server.pieces)
	n.keeper.Heed(nil, []contract.JobKey{first}, n.now)
	n.await(func() bool { return len(n.keeper.Reports()) == 0 })
	require.NoDirExists(t, inTheWay)
	require.Zero(t, n.run(order("true")))
}

// An order that is repeated, also to a daemon that began again, runs once.
func TestARepeatedOrderRunsOnce(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("pipe")
	o := order("echo once; cat " + pipe)
	n.answer(0, o, o)
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "") == "once\n" })
	require.Equal(t, contract.JobRankRunning, n.report(first).State)
	n.begin()
	n.answer(0, o)
	n.await(func() bool { return n.report(first).RanSeconds > 0 })
	require.NoError(t, os.WriteFile(pipe, []byte("later\n"), 0))
	require.Zero(t, n.awaitEnd(first))
	n.answer(0, o)
	n.begin()
	n.answer(0, o)
	require.Zero(t, n.awaitEnd(first))
	require.Equal(t, "once\nlater\n", n.server.got(first, ""))
	require.Zero(t, n.runnerOf(first))
}

// The end of a job that this daemon started waits neither for the next look nor for output that is not there.
func TestAnEndIsSeenAtOnce(t *testing.T) {
	n := newNode(t)
	n.keeper.Close()
	n.open(jobs.Config{Holds: n.holds, LookEvery: time.Hour, SendEvery: time.Hour})
	require.Zero(t, n.run(order("echo over")))
	require.Equal(t, "over\n", n.server.got(first, ""))
}

// A job whose runner was killed is lost: nobody knows how it ended.
func TestAJobWithoutARunnerIsLost(t *testing.T) {
	n := newNode(t)
	n.answer(0, order("echo up; sleep 1000"))
	n.await(func() bool { return n.server.got(first, "") == "up\n" })
	require.NoError(t, syscall.Kill(n.runnerOf(first), syscall.SIGKILL))
	want := contract.JobReport{Code: "lost",
		Reason: "what watched it on its node has ended before it, or with the machine"}
	require.Equal(t, want, n.awaitEnd(first))
	n.begin()
	n.answer(0, order("echo again"))
	require.Equal(t, want, n.awaitEnd(first))
	require.Equal(t, "up\n", n.server.got(first, ""))
}

// What a daemon finds of others, of its own version or a later one: it ended before it started the runner, or
// the machine booted since.
func TestWhatEarlierDaemonsLeft(t *testing.T) {
	n := newNode(t)
	require.Zero(t, n.run(order("echo up")))
	text, err := os.ReadFile(filepath.Join(n.folder(first), "order.json"))
	require.NoError(t, err)
	files := []map[string]string{
		{"order.json": strings.Replace(string(text), "{", `{"later":1,`, 1)},
		{"order.json": "no JSON"},
		{"order.json": string(text), "started.json": `{"boot_id":"another","seconds":1}`},
		{"order.json": regexp.MustCompile(`"boot_id":"[^"]+"`).ReplaceAllString(string(text), `"boot_id":"another"`)},
	}
	for i, each := range files {
		key := contract.JobKey{JobID: "job_1", Attempt: i + 2}
		require.NoError(t, os.Mkdir(n.folder(key), 0o700))
		for name, text := range each {
			require.NoError(t, os.WriteFile(filepath.Join(n.folder(key), name), []byte(text), 0o600))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(n.dir, "jobs", ".job_1-6"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(n.dir, "jobs", "lost+found"), 0o700))
	n.begin()
	n.await(func() bool { return n.keeper.Reports()[4].State == contract.JobRankEnded })
	never := contract.JobReport{Rank: 2, State: "ended", Code: "not_started",
		Reason: "the daemon of its node ended before it was started"}
	lost := contract.JobReport{Rank: 2, State: "ended", Code: "lost",
		Reason: "what watched it on its node has ended before it, or with the machine"}
	unread := never
	unread.Rank = 0
	for i, want := range []contract.JobReport{never, unread, lost, lost} {
		got := n.report(contract.JobKey{JobID: "job_1", Attempt: i + 2})
		got.JobKey = contract.JobKey{}
		require.Equal(t, want, got)
	}
	require.NoDirExists(t, filepath.Join(n.dir, "jobs", ".job_1-6"))
}

// A heartbeat has room for so many, those that have ended first; what has no proper name is none.
func TestAHeartbeatHasRoomForSoMany(t *testing.T) {
	n := newNode(t)
	n.keeper.Close()
	n.open(jobs.Config{Refusal: "none"})
	for i := range 260 {
		o := order("echo no")
		o.Attempt = i // 0 is none
		n.answer(0, o)
	}
	o := order("echo no")
	o.JobID = "../job"
	n.answer(0, o)
	n.await(func() bool {
		all := n.keeper.Reports()
		return len(all) == 256 && all[255].State == contract.JobRankEnded && all[0].Attempt == 1
	})
}

// When its time is over, a job is told to keep what it has, then to end, and then it is ended.
func TestTheTimeLimit(t *testing.T) {
	n := newNode(t)
	o := order(`trap 'echo keep' USR1; trap 'echo end' TERM
sh -c 'trap "" USR1 TERM; while :; do sleep 0.05; done' & while :; do wait; done`)
	// Seconds, so that a slow machine has set the traps by then; how many, TestWhenACommandIsToldThatItsTimeIsOver tells.
	o.MaxRuntimeSeconds, o.GraceSeconds, o.Checkpoint = 4, 2, &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 2}
	want := contract.JobReport{ExitCode: 137, Signal: "KILL", Code: "time_limit", Reason: "its time of 4 s was over"}
	require.Equal(t, want, n.run(o))
	require.Equal(t, "keep\nend\n", n.server.got(first, "stdout"))
	require.Greater(t, n.report(first).RanSeconds, 5.9)

	o = order("trap 'echo saved; exit 3' TERM; while :; do sleep 0.05; done")
	o.Attempt, o.MaxRuntimeSeconds = 2, 3
	require.Equal(t, contract.JobReport{ExitCode: 3, Code: "time_limit", Reason: "its time of 3 s was over"}, n.run(o))
	require.Equal(t, "saved\n", n.server.got(o.JobKey, "stdout"))
}

// The end of a hold ends its jobs, whose runners say how.
func TestTheEndOfAHoldEndsItsJobs(t *testing.T) {
	n := newNode(t)
	n.answer(0, order("trap 'echo told; exit 4' TERM; echo up; while :; do sleep 0.05; done"))
	n.await(func() bool { return n.server.got(first, "") == "up\n" })
	n.holds.End([]string{alc(1)})
	require.Equal(t, contract.JobReport{ExitCode: 4}, n.awaitEnd(first))
	require.Equal(t, "up\ntold\n", n.server.got(first, "stdout"))
	require.Zero(t, n.runnerOf(first))
	<-n.holds.Changed()
	require.Empty(t, n.holds.List())
}

// A job whose hold the node has ended by itself, as its lease was over, is lost by no fault of its own, whatever it
// made of the signal; also for a daemon that begins again, and after the hold is forgotten.
func TestAJobWhoseLeaseWasOverIsLost(t *testing.T) {
	n := newNode(t)
	want := contract.JobReport{Code: contract.JobLost,
		Reason: "its node ended it, as its lease was over and the control plane could not be reached"}
	for i, script := range []string{"echo up; sleep 1000",
		"trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"} {
		o := order(script)
		o.AllocationID, o.Attempt, o.LeaseSeconds = alc(10+i), i+1, 1
		n.answer(0, o)
		n.await(func() bool { return n.server.got(o.JobKey, "") == "up\n" })
		n.holds.EndLapsed(time.Now().Add(time.Hour), time.Time{})
		require.Equal(t, contract.JobRankRunning, n.report(o.JobKey).State)
		require.Equal(t, want, n.awaitEnd(o.JobKey))
		require.Positive(t, n.report(o.JobKey).RanSeconds)
	}
	n.forgetHolds()
	n.begin()
	n.answer(0)
	require.Equal(t, want, n.awaitEnd(first))
}

// What ended by itself before the lease was over ended as it did, and so did what had its own time.
func TestWhatEndedBeforeItsLeaseEndedAsItDid(t *testing.T) {
	n := newNode(t)
	o := order("exit 5")
	o.LeaseSeconds = 1
	require.Equal(t, contract.JobReport{ExitCode: 5}, n.run(o))
	second := order("trap 'exit 6' TERM; echo up; while :; do sleep 0.05; done")
	second.Attempt = 2
	n.answer(0, second)
	n.await(func() bool { return n.server.got(second.JobKey, "") == "up\n" })
	n.keeper.Stop([]contract.JobStop{stopOf(second, 30)})
	require.Equal(t, contract.JobReport{ExitCode: 6, Code: contract.JobStopped}, n.awaitEnd(second.JobKey))
	n.holds.EndLapsed(time.Now().Add(time.Hour), time.Time{})
	n.begin()
	require.Equal(t, contract.JobReport{ExitCode: 5}, n.awaitEnd(first))
	require.Equal(t, contract.JobReport{ExitCode: 6, Code: contract.JobStopped}, n.awaitEnd(second.JobKey))
}

// What a job is given is for root alone, and gone once it is forgotten.
func TestWhatIsForgottenIsGone(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("pipe")
	o := order("cat " + pipe)
	o.Environment, o.Input = map[string]string{"TOKEN": "secret-token"}, []byte("secret-input")
	n.answer(0, o)
	n.await(func() bool { return n.report(first).RanSeconds > 0 })
	require.NoError(t, filepath.WalkDir(filepath.Join(n.dir, "jobs"), func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		require.Equal(t, os.Getuid(), int(info.Sys().(*syscall.Stat_t).Uid), path)
		return nil
	}))
	text, err := os.ReadFile(filepath.Join(n.folder(first), "order.json"))
	require.NoError(t, err)
	require.Contains(t, string(text), "secret-token")
	n.keeper.Heed(nil, []contract.JobKey{first, {JobID: "job_of_nobody", Attempt: 1}}, n.now)
	require.Equal(t, contract.JobRankRunning, n.report(first).State, "one that runs is not forgotten")
	nobodys := contract.JobKey{JobID: "job_of_nobody", Attempt: 1}
	n.begin()
	require.Equal(t, []contract.JobKey{nobodys}, n.keeper.Gone([]contract.JobKey{first, nobodys}))
	n.keeper.Heed(nil, []contract.JobKey{first}, n.now)
	require.NoError(t, os.WriteFile(pipe, nil, 0))
	n.await(func() bool { return len(n.keeper.Reports()) == 0 })
	require.Equal(t, []contract.JobKey{first}, n.keeper.Gone([]contract.JobKey{first}))
	require.Eventually(t, func() bool { return n.isWiped(n.onlyFolder()) }, time.Minute, time.Millisecond)
}

// An end of a hold waits for a job that is being started there, and ends it; a daemon that begins
// meanwhile waits for it, too.
func TestAnEndWaitsForAJobThatIsBeingStarted(t *testing.T) {
	n := newNode(t)
	n.keeper.Close()
	pipe := n.newPipe("pipe")
	n.runner = append([]string{"/bin/sh", "-c", `read line <"$0"; exec "$@"`, pipe}, n.runner...)
	n.begin()
	n.answer(0, order("sleep 1000"))
	n.await(func() bool { return n.isBeingStarted(first) })
	var all sync.WaitGroup
	all.Go(func() {
		<-n.holds.Changed()
		assert.FileExists(t, filepath.Join(n.folder(first), "started.json"), "the hold is ended before")
	})
	all.Go(func() {
		next, err := jobs.Open(n.Context(), n.complete(jobs.Config{Holds: n.holds}))
		assert.NoError(t, err)
		assert.FileExists(t, filepath.Join(n.folder(first), "started.json"), "the next daemon does not wait")
		next.Close()
	})
	n.holds.End([]string{alc(1)})
	require.Equal(t, contract.JobRankRunning, n.report(first).State)
	_, err := n.holds.Begin(alc(1))
	require.ErrorIs(t, err, hold.ErrEnded)
	require.NoError(t, os.WriteFile(pipe, []byte("go\n"), 0))
	all.Wait()
	require.Equal(t, contract.JobReport{ExitCode: 143, Signal: "TERM"}, n.awaitEnd(first))
}
