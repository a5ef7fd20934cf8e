package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/test/chaos/audit"
	"github.com/forewarm/forewarm/test/chaos/load"
)

// knownJobs have one job of a manner, which ended as it must in its second attempt.
func knownJobs(manner, state string, code int) audit.Jobs {
	text := ""
	for n := range load.PrintedLines {
		text += fmt.Sprintf("job_1 2 line %d\n", n+1)
	}
	return audit.Jobs{
		Entries: []load.Entry{{At: dawn, Op: load.Submit, Organization: "org", ID: "job_1", Name: "a", Manner: manner}},
		Told: map[string]contract.Job{"job_1": {ID: "job_1", OrganizationID: "org", Name: "a", State: state, Attempt: 2,
			ExitCode: &code}},
		Output: map[string]string{"job_1": text},
		Runs: []audit.Run{{At: secondsAfter(1), JobID: "job_1", Attempt: 1},
			{At: secondsAfter(2), JobID: "job_1", Attempt: 2},
			{At: secondsAfter(3), JobID: "job_1", Attempt: 2, Ends: true, ExitCode: code}},
		Events: []ledger.Event{{Type: "job.submitted", Subject: "job_1"}, {Type: "job.pending", Subject: "job_1"},
			{Type: "job." + state, Subject: "job_1"}},
	}
}

func TestJobsThatEndedAsTheyMust(t *testing.T) {
	t.Parallel()
	for manner, j := range map[string]audit.Jobs{
		load.Trivial: knownJobs(load.Trivial, contract.JobCompleted, 0),
		load.Prints:  knownJobs(load.Prints, contract.JobCompleted, 0),
		load.Fails:   knownJobs(load.Fails, contract.JobFailed, 4),
	} {
		require.Equal(t, audit.JobFaults{Over: 1, Attempts: 2}, j.Judge(), manner)
	}
	cancelled := knownJobs(load.Sleeps, contract.JobCancelled, 0)
	cancelled.Entries = append(cancelled.Entries, load.Entry{Op: load.CancelJob, ID: "job_1"})
	cancelled.Runs = cancelled.Runs[:1]
	require.Equal(t, audit.JobFaults{Over: 1, Attempts: 1, Cancelled: 1}, cancelled.Judge())
}

func TestWhatIsWrongWithJobsIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*audit.Jobs)
		found func(audit.JobFaults) []string
		want  string
	}{
		"lost": {func(j *audit.Jobs) { delete(j.Told, "job_1") }, lostJobs, "is not there"},
		"not over": {func(j *audit.Jobs) { tell(j, func(t *contract.Job) { t.State = contract.JobRunning }) }, lostJobs,
			"is running"},
		"ended otherwise": {func(j *audit.Jobs) { tell(j, func(t *contract.Job) { t.State = contract.JobFailed }) },
			lostJobs, "must be completed"},
		"never ran": {func(j *audit.Jobs) { j.Runs = j.Runs[:2] }, lostJobs, "and did not"},
		"another's": {func(j *audit.Jobs) { tell(j, func(t *contract.Job) { t.OrganizationID = "other" }) }, lostJobs,
			`is "a" of other`},
		"ended twice": {func(j *audit.Jobs) { j.Events = append(j.Events, j.Events[2]) }, misplacedJobs,
			"ended 2 times"},
		"after success": {func(j *audit.Jobs) {
			j.Runs = append(j.Runs, audit.Run{At: secondsAfter(4), JobID: "job_1", Attempt: 3})
		}, twiceJobs, "after attempt 2 had succeeded"},
		"one attempt twice": {func(j *audit.Jobs) { j.Runs = append(j.Runs, j.Runs[0]) }, twiceJobs, "began twice"},
		"torn": {func(j *audit.Jobs) { j.Output["job_1"] = j.Output["job_1"][:100] }, tornJobs,
			"from byte 100 on"},
		"two of one request": {func(j *audit.Jobs) { j.Told["job_2"] = contract.Job{OrganizationID: "org", Name: "a"} },
			misplacedJobs, "asked for 1 jobs and made 2"},
		"before its turn": {func(j *audit.Jobs) {
			j.Entries[0].After = "job_0"
			j.Runs = append(j.Runs, audit.Run{At: secondsAfter(9), JobID: "job_0", Attempt: 1, Ends: true})
		}, misplacedJobs, "for which it waits"},
		"nothing": {func(j *audit.Jobs) { *j = audit.Jobs{} }, blindOn, "nothing"},
	} {
		j := knownJobs(load.Prints, contract.JobCompleted, 0)
		c.spoil(&j)
		found := c.found(j.Judge())
		require.Len(t, found, 1, name)
		require.Contains(t, found[0], c.want, name)
	}
}

func tell(j *audit.Jobs, change func(*contract.Job)) {
	told := j.Told["job_1"]
	change(&told)
	j.Told["job_1"] = told
}

func lostJobs(f audit.JobFaults) []string      { return f.Lost }
func misplacedJobs(f audit.JobFaults) []string { return f.Misplaced }
func twiceJobs(f audit.JobFaults) []string     { return f.RunTwice }
func blindOn(f audit.JobFaults) []string       { return f.Blind }
func tornJobs(f audit.JobFaults) []string      { return f.Torn }

func TestRunsAreRead(t *testing.T) {
	t.Parallel()
	all, err := audit.ParseRuns(strings.NewReader("1.000002 ends job_1 2 3 1\n1.000001 begins job_1 2 - 1\n"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.False(t, all[0].Ends)
	require.Equal(t, 3, all[1].ExitCode)
	require.Equal(t, 1, all[1].Rank)
	for _, wrong := range []string{"1.000001 begins job_1 2", "1.000001 works job_1 2 - 0", "x begins job_1 2 - 0",
		"1.000001 begins job_1 x - 0", "1.000001 ends job_1 2 - 0", "1.000001 begins job_1 2 - x"} {
		_, err := audit.ParseRuns(strings.NewReader(wrong))
		require.Error(t, err, wrong)
	}
}
