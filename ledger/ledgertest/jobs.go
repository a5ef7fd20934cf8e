package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// newJob returns a job that has failed, with all that one can have.
func newJob(w *world, id, org, poolID string, at time.Time) job.Job {
	w.Helper()
	j := job.New(job.Job{ID: id, OrganizationID: org, PoolID: poolID, Name: "train", SubmittedBy: "key_1",
		UserID: "usr_1", Priority: job.High, Shape: capacity.Shape{Nodes: 2, PerNode: 3, Short: 1},
		Command: job.Command{Arguments: []string{"sh", "-c", "true"}, Directory: "/data",
			Environment: map[string]string{"A": "1"}, Input: []byte{0, 1}},
		MaxRuntime: time.Hour, Grace: time.Minute, Checkpoint: job.Checkpoint{Signal: "USR1", Before: time.Minute},
		Retries:      job.Retries{Failed: 2, Lost: 3},
		Dependencies: []job.Depends{{JobID: "job_0", Condition: job.AfterAny}}, ArrayID: "arr_1", ArrayIndex: 7,
		NotBefore: at, AllocationID: "alc_1", Failures: 1, Losses: 1, GPUTime: time.Hour, Cost: 5}, false, at)
	for _, e := range []job.Event{job.Schedule, job.Start} {
		var err error
		j, err = j.Apply(e, "", at)
		require.NoError(w, err)
	}
	j.End = job.End{Code: job.Exit, ExitCode: 3, Signal: "KILL", Reason: "why", Ran: true}
	j, err := j.Apply(job.Fail, job.Exit, at.Add(time.Hour))
	require.NoError(w, err)
	return j
}

// waitingJob returns a job that waits.
func waitingJob(id, org, poolID string, at time.Time) job.Job {
	return job.New(job.Job{ID: id, OrganizationID: org, PoolID: poolID, Priority: job.Normal,
		Shape: capacity.Shape{Nodes: 1, PerNode: 1}, Command: job.Command{Arguments: []string{"true"}, Input: []byte{1}},
		MaxRuntime: time.Hour, Grace: time.Second}, false, at)
}

func jobsAreFound(w *world) {
	n := saveGround(w)
	over, waits := newJob(w, "job_1", "org_1", "pol_1", day), waitingJob("job_2", "org_1", "pol_1", day)
	comesBack(w, over, ledger.Change{Jobs: []job.Job{over}},
		func(r ledger.Reader) (job.Job, error) { return r.Job(everything, "job_1") })
	w.mustSave(ledger.Change{Jobs: []job.Job{waits}})
	waits.Version = 1
	waits.Name = "later"
	w.mustSave(ledger.Change{Jobs: []job.Job{waits}})
	w.readSnapshot(func(r ledger.Reader) error {
		live, err := r.LiveJobs("pol_1")
		require.NoError(w, err)
		require.Len(w, live, 1)
		require.Equal(w, "later", live[0].Name)
		require.Empty(w, live[0].Command.Input, "lists come without it")
		count, err := r.CountLiveJobs("pol_1")
		require.NoError(w, err)
		require.Equal(w, map[string]int{"org_1": 1}, count)
		whole, err := r.Job(everything, "job_2")
		require.NoError(w, err)
		require.Equal(w, []byte{1}, whole.Command.Input, "a change leaves it alone")
		byID, err := r.JobsByID([]string{"job_1", "job_404", "job_2"})
		require.NoError(w, err)
		require.Len(w, byID, 2)
		for f, want := range map[*ledger.JobFilter]string{
			{ArrayID: "arr_1"}: "job_1", {Name: "later"}: "job_2", {Live: true}: "job_2",
			{State: []string{"failed"}}: "job_1", {SubmittedBy: "key_1"}: "job_1", {UserID: "usr_1", PoolID: "pol_1"}: "job_1",
		} {
			got, err := r.Jobs(everything, *f, ledger.Page{})
			require.NoError(w, err)
			require.Len(w, got, 1, "%+v", *f)
			require.Equal(w, want, got[0].ID)
		}
		return nil
	})
	ranksAreFound(w, n.ID)
	outputIsFound(w)
}

func ranksAreFound(w *world, nodeID string) {
	first := job.Rank{JobID: "job_1", Attempt: 1, NodeID: nodeID, State: job.Ordered}
	second := job.Rank{JobID: "job_1", Attempt: 1, Rank: 1, NodeID: nodeID, State: job.RankRunning}
	w.mustSave(ledger.Change{JobRanks: []job.Rank{second, first}})
	second.State, second.End = job.RankEnded, job.End{Code: job.Exit, ExitCode: 3, Ran: true}
	w.mustSave(ledger.Change{JobRanks: []job.Rank{second}})
	w.readSnapshot(func(r ledger.Reader) error {
		got, err := r.JobRanks("job_1", 1)
		require.NoError(w, err)
		require.Equal(w, []job.Rank{first, second}, got)
		on, err := r.RanksOn(nodeID)
		require.NoError(w, err)
		require.Equal(w, []job.Rank{first}, on, "what has ended is on no node")
		none, err := r.JobRanks("job_1", 2)
		require.Empty(w, none)
		return err
	})
}

func outputIsFound(w *world) {
	part := func(start int64, text string) ledger.JobOutput {
		return ledger.JobOutput{JobID: "job_1", Attempt: 1, Start: start, End: start + int64(len(text)),
			Pieces: []ledger.JobPiece{{Stream: "stdout", At: day, Data: []byte(text)}}}
	}
	w.mustSave(ledger.Change{JobOutput: []ledger.JobOutput{part(0, "abc"), part(3, "def"), part(6, "g")}})
	w.mustSave(ledger.Change{JobOutput: []ledger.JobOutput{part(3, "xyz")}}) // it is there
	read := func(after int64, limit int) []ledger.JobOutput {
		return readValue(w, func(r ledger.Reader) ([]ledger.JobOutput, error) {
			return r.JobOutput("job_1", 1, 0, after, limit)
		})
	}
	require.Equal(w, []ledger.JobOutput{part(3, "def"), part(6, "g")}, read(3, 9))
	require.Equal(w, []ledger.JobOutput{part(0, "abc")}, read(0, 1))
	for rank, end := range []int64{7, 0} {
		require.Equal(w, end, readValue(w, func(r ledger.Reader) (int64, error) { return r.JobOutputEnd("job_1", 1, rank) }))
	}
	w.mustSave(ledger.Change{TrimmedOutput: []ledger.TrimmedOutput{{JobID: "job_1", Attempt: 1, From: 1, To: 6}}})
	require.Equal(w, []ledger.JobOutput{part(0, "abc"), part(6, "g")}, read(0, 9))
}
