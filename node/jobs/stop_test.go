package jobs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

func stopOf(o contract.JobOrder, grace int64) contract.JobStop {
	return contract.JobStop{JobKey: o.JobKey, GraceSeconds: grace}
}

// A job that is told to end gets the signal of its checkpoint, TERM once, and the time of its grace. What it
// starts to save its work is told nothing.
func TestAJobThatIsToldToEndHasItsGrace(t *testing.T) {
	n := newNode(t)
	o := order("trap 'echo usr1' USR1; trap 'echo term; (trap \"echo told\" TERM; sleep 0.5; echo saved); exit 0' TERM; " +
		"echo ready; while :; do sleep 0.05; done")
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "stdout") == "ready\n" })
	stop := stopOf(o, 30)
	stop.Signal, stop.LeadSeconds = "USR1", 1
	n.keeper.Stop([]contract.JobStop{stop})
	n.begin() // the runner goes on, and the next daemon is told again
	n.keeper.Stop([]contract.JobStop{stop, {JobKey: contract.JobKey{JobID: "job_of_nobody", Attempt: 1}}})
	require.Equal(t, contract.JobReport{Code: contract.JobStopped}, n.awaitEnd(first))
	require.Equal(t, "ready\nusr1\nterm\nsaved\n", n.server.got(first, "stdout"))
	n.keeper.Stop([]contract.JobStop{stop})
	require.Equal(t, contract.JobStopped, n.report(first).Code, "what has ended is told nothing")
}

// A checkpoint for the first process alone reaches nothing that it started: a program that has no handler lives on.
func TestACheckpointOfTheLeaderAlone(t *testing.T) {
	for leaderOnly, want := range map[bool]string{true: "ready\nshell\nchild ended by 15\n",
		false: "ready\nshell\nchild ended by 10\n"} {
		n := newNode(t)
		o := order("sleep 1000 & trap 'echo shell' USR1; trap 'kill $!' TERM; echo ready; " +
			"until ! kill -0 $! 2>/dev/null; do wait $!; s=$?; done; echo child ended by $((s - 128))")
		n.answer(0, o)
		n.await(func() bool { return n.server.got(first, "stdout") == "ready\n" })
		stop := stopOf(o, 30)
		stop.Signal, stop.LeadSeconds, stop.LeaderOnly = "USR1", 1, leaderOnly
		n.keeper.Stop([]contract.JobStop{stop})
		n.awaitEnd(first)
		require.Equal(t, want, n.server.got(first, "stdout"), leaderOnly)
	}
}

// When its time is nearly over, too.
func TestTheTimeLimitTellsTheLeaderAlone(t *testing.T) {
	n := newNode(t)
	o := order("sh -c 'trap \"echo child\" USR1; while :; do sleep 0.05; done' & trap 'echo shell' USR1; " +
		"while :; do wait; done")
	o.MaxRuntimeSeconds, o.GraceSeconds = 4, 60 // the first signal after two seconds: by then it has set its trap
	o.Checkpoint = &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 2, LeaderOnly: true}
	require.Equal(t, contract.JobTimeLimit, n.run(o).Code)
	require.Equal(t, "shell\n", n.server.got(first, "stdout"))
}

// KILL comes when the grace is over, also to a job that may run for ever.
func TestTheGraceIsBounded(t *testing.T) {
	n := newNode(t)
	o := order("trap '' TERM; echo ready; while :; do sleep 0.05; done")
	o.MaxRuntimeSeconds = 0
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "stdout") == "ready\n" })
	n.keeper.Stop([]contract.JobStop{stopOf(o, 1)})
	require.Equal(t, contract.JobReport{Code: contract.JobStopped, ExitCode: 137, Signal: "KILL"}, n.awaitEnd(first))
}

// Who is told to end because its time is over is not told anew.
func TestTheTimeLimitGoesFirst(t *testing.T) {
	n := newNode(t)
	o := order("trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done")
	o.MaxRuntimeSeconds, o.GraceSeconds = 3, 2
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "stdout") == "ready\nterm\n" })
	n.keeper.Stop([]contract.JobStop{stopOf(o, 60)})
	require.Equal(t, contract.JobTimeLimit, n.awaitEnd(first).Code)
	require.Equal(t, "ready\nterm\n", n.server.got(first, "stdout"))
}
