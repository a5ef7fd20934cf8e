package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/test/chaos/audit"
	"github.com/forewarm/forewarm/test/chaos/load"
)

// knownGang is a job on two nodes whose first attempt lost a rank, and whose second one completed. It was requeued
// once, and left for another job once.
func knownGang() audit.Jobs {
	j := knownJobs(load.Meets, contract.JobCompleted, 0)
	j.Entries = append(j.Entries, load.Entry{Op: load.RequeueJob, ID: "job_1"})
	tell(&j, func(t *contract.Job) { t.Nodes, t.Preemptible, t.Preemptions = 2, true, 1 })
	j.Runs = append(j.Runs, audit.Run{At: secondsAfter(2), JobID: "job_1", Attempt: 2, Rank: 1},
		audit.Run{At: secondsAfter(4), JobID: "job_1", Attempt: 2, Rank: 1, Ends: true})
	return j
}

func TestGangsThatEndedAsTheyMust(t *testing.T) {
	t.Parallel()
	require.Equal(t, audit.JobFaults{Over: 1, Attempts: 2, Gangs: 1, Requeued: 1, Preempted: 1}, knownGang().Judge())

	cancelled := knownGang() // it had completed before it heard of its cancellation
	cancelled.Entries = append(cancelled.Entries, load.Entry{Op: load.CancelJob, ID: "job_1"})
	require.Empty(t, cancelled.Judge().Lost)

	requeued := knownGang() // it was told to end, succeeded while nobody heard of it, and began anew
	requeued.Events = append(requeued.Events, ledger.Event{At: secondsAfter(3), Type: ledger.JobEnding, Subject: "job_1"})
	requeued.Runs = append(requeued.Runs, audit.Run{At: secondsAfter(9), JobID: "job_1", Attempt: 3})
	require.Empty(t, requeued.Judge().RunTwice)

	early := knownGang() // it was told to end before it began, and its nodes heard of that too late
	early.Events = append(early.Events, ledger.Event{At: secondsAfter(1), Type: ledger.JobOrdered, Subject: "job_1"},
		ledger.Event{At: secondsAfter(1), Type: ledger.JobEnding, Subject: "job_1"})
	early.Runs = append(early.Runs, audit.Run{At: secondsAfter(9), JobID: "job_1", Attempt: 3})
	require.Empty(t, early.Judge().RunTwice)

	taken := knownGang() // it was told to end after its nodes had fallen silent, and its GPUs were taken
	taken.Events = append(taken.Events, ledger.Event{At: secondsAfter(5), Type: ledger.JobEnding, Subject: "job_1"})
	taken.Runs = append(taken.Runs, audit.Run{At: secondsAfter(100), JobID: "job_1", Attempt: 3})
	require.Empty(t, taken.Judge().RunTwice)
}

func TestWhatIsWrongWithGangsIsFound(t *testing.T) {
	t.Parallel()
	split := func(f audit.JobFaults) []string { return f.Split }
	left := func(f audit.JobFaults) []string { return f.Left }
	later := func(rank int) audit.Run {
		return audit.Run{At: secondsAfter(9), JobID: "job_1", Attempt: 3, Rank: rank}
	}
	for name, c := range map[string]struct {
		spoil func(*audit.Jobs)
		found func(audit.JobFaults) []string
		want  string
	}{
		"a rank that never ran": {func(j *audit.Jobs) { j.Runs = j.Runs[:3] }, split, "rank 1 did not run to its end"},
		"a rank of another attempt": {func(j *audit.Jobs) { j.Runs[3].Attempt, j.Runs[4].Attempt = 1, 1 }, split,
			"in attempt 2, and rank 1 did not run"},
		"a rank after the other": {func(j *audit.Jobs) { j.Runs[3].At = secondsAfter(3) }, split,
			"and another one was over"},
		"a rank too many": {func(j *audit.Jobs) { j.Runs[0].Rank = 2 }, split, "which has 2 nodes"},
		"a rank twice":    {func(j *audit.Jobs) { j.Runs = append(j.Runs, j.Runs[3]) }, twiceJobs, "twice on rank 1"},
		"after success":   {func(j *audit.Jobs) { j.Runs = append(j.Runs, later(0)) }, twiceJobs, "attempt 2 had succeeded"},
		"told to end after success": {func(j *audit.Jobs) {
			j.Events = append(j.Events, ledger.Event{At: secondsAfter(5), Type: ledger.JobEnding, Subject: "job_1"})
			j.Runs = append(j.Runs, later(0))
		}, twiceJobs, "attempt 2 had succeeded"},
		"the attempt before was told to end": {func(j *audit.Jobs) {
			j.Events = append(j.Events, ledger.Event{At: secondsAfter(0), Type: ledger.JobEnding, Subject: "job_1"},
				ledger.Event{At: secondsAfter(1), Type: ledger.JobOrdered, Subject: "job_1"})
			j.Runs = append(j.Runs, later(0))
		}, twiceJobs, "attempt 2 had succeeded"},
		"left unasked": {func(j *audit.Jobs) { tell(j, func(t *contract.Job) { t.Preemptible = false }) }, left,
			"does not allow it"},
		"never came back": {func(j *audit.Jobs) { tell(j, func(t *contract.Job) { t.Preemptions = 2 }) }, left,
			"left 2 times, and had 2 attempts"},
	} {
		j := knownGang()
		c.spoil(&j)
		found := c.found(j.Judge())
		require.Len(t, found, 1, name)
		require.Contains(t, found[0], c.want, name)
	}
}
