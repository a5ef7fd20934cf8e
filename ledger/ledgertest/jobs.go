package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/ledger"
)

// newJob returns a job that has failed, with all that one can have.
func newJob(w *world, id, org, poolID string, at time.Time) job.Job {
	w.Helper()
	j := job.New(job.Job{ID: id, OrganizationID: org, PoolID: poolID, Name: "train", SubmittedBy: "key_1",
		UserID: "usr_1", Priority: "urgent", Shape: capacity.Shape{Nodes: 2, PerNode: 3, Short: 1},
		Command: job.Command{Arguments: []string{"sh", "-c", "true"}, Directory: "/data",
			Environment: map[string]string{"A": "1"}, Input: []byte{0, 1}, Slurm: true, Image: "python:3.12",
			Mounts: []job.Mount{{Source: "/data", Target: "/d", ReadOnly: true}}},
		MaxRuntime: time.Hour, Grace: time.Minute,
		Checkpoint:  job.Checkpoint{Signal: "USR1", Before: time.Minute, LeaderOnly: true},
		Retries:     job.Retries{Failed: 2, Lost: 3},
		Reservation: "rsv_1", Workload: capacity.Online,
		Dependencies: []job.Depends{{JobID: "job_0", Condition: job.AfterAny}}, ArrayIndex: 7,
		Array: job.Array{ID: "arr_1", Jobs: 3, First: 2, Last: 9, Limit: 2},
		Where: job.Where{Near: []string{"job_0"}, Apart: []string{"web"},
			Constraints: []string{"disk=nvme"}, Prefers: []string{"rack=r1"}, Tolerates: []string{"old"},
			Excludes: []string{"nod_8"}, Pools: []string{"pol_1", "pol_2"}}, Avoids: []string{"nod_9"},
		NotBefore: at, AllocationID: "alc_1", Failures: 1, Losses: 1, GPUTime: time.Hour, Cost: 5,
		Predicted: job.Predicted{P10: time.Minute, P50: time.Hour, P90: 2 * time.Hour}}, false, at)
	for _, e := range []job.Event{job.Schedule, job.Start} {
		var err error
		j, err = j.Apply(e, "", at)
		require.NoError(w, err)
	}
	j.Preemptible, j.Preemptions, j.EligibleAt = true, 2, at.Add(time.Minute)
	j.End = job.End{Code: job.Exit, ExitCode: 3, Signal: "KILL", Reason: "why", Ran: true, PeakMemory: 7,
		At: at.Add(time.Minute)}
	j, err := j.Apply(job.Fail, job.Exit, at.Add(time.Hour))
	require.NoError(w, err)
	j.Ending = job.Ending{Then: job.ThenPreempted, Asked: at, By: at.Add(time.Hour), Lead: time.Minute,
		Grace: time.Second, For: "job_9", Hold: true}
	j.Awaited = job.Awaited{For: "job_8", Until: at.Add(time.Minute)}
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
		versions, err := r.LiveJobVersions("pol_1")
		require.NoError(w, err)
		require.Equal(w, []ledger.JobVersion{{ID: live[0].ID, Version: live[0].Version}}, versions)
		count, err := r.CountLiveJobs("pol_1")
		require.NoError(w, err)
		require.Equal(w, map[string]int{"org_1": 1}, count)
		whole, err := r.Job(everything, "job_2")
		require.NoError(w, err)
		require.Equal(w, []byte{1}, whole.Command.Input, "a change leaves it alone")
		byID, err := r.JobsByID([]string{"job_1", "job_404", "job_2"})
		require.NoError(w, err)
		require.Len(w, byID, 2)
		progress, err := r.ArrayProgress([]string{"arr_1", "arr_404"})
		require.NoError(w, err)
		require.Equal(w, map[string]job.Progress{"arr_1": job.ProgressOf(over)}, progress)
		counted, err := r.CountJobs(everything, ledger.JobFilter{})
		require.NoError(w, err)
		require.Equal(w, map[job.State]int{job.Pending: 1, job.Failed: 1}, counted)
		counted, err = r.CountJobs(everything, ledger.JobFilter{ArrayID: "arr_1"})
		require.NoError(w, err)
		require.Equal(w, map[job.State]int{job.Failed: 1}, counted)
		for f, want := range map[*ledger.JobFilter]string{
			{ArrayID: "arr_1"}: "job_1", {ArrayIndex: new(7)}: "job_1", {Name: "later"}: "job_2", {Live: true}: "job_2",
			{State: []string{"failed"}}: "job_1", {SubmittedBy: "key_1"}: "job_1", {UserID: "usr_1", PoolID: "pol_1"}: "job_1",
		} {
			got, err := r.Jobs(everything, *f, ledger.Page{})
			require.NoError(w, err)
			require.Len(w, got, 1, "%+v", *f)
			require.Equal(w, want, got[0].ID)
		}
		return nil
	})
	for _, count := range []int{1, 2} { // the later replaces the earlier
		used := ledger.JobEntries{Who: "org_1/usr_1", Entries: queue.Entries{FullAt: day, Day: 7, Count: count}}
		w.mustSave(ledger.Change{JobEntries: []ledger.JobEntries{{Who: used.Who}, used}})
		w.readSnapshot(func(r ledger.Reader) error {
			got, err := r.JobEntries(used.Who)
			require.Equal(w, used, got)
			return err
		})
	}
	for _, next := range [][]ledger.JobTurn{{{JobID: "job_1", Predicted: job.Predicted{P50: time.Minute}}}, nil} {
		turns := ledger.JobTurns{PoolID: "pol_1", DecidedAt: day, Next: next, // the later replaces the earlier
			Ahead: []ledger.JobAhead{{JobID: "job_2", At: day, Until: day.Add(time.Hour), Slots: []int{1}, GPUs: []int{4}}}}
		w.mustSave(ledger.Change{JobTurns: []ledger.JobTurns{turns}})
		require.Equal(w, turns, readValue(w, func(r ledger.Reader) (ledger.JobTurns, error) { return r.JobTurns("pol_1") }))
	}
	require.Equal(w, ledger.JobTurns{PoolID: "pol_2"},
		readValue(w, func(r ledger.Reader) (ledger.JobTurns, error) { return r.JobTurns("pol_2") }))
	w.mustSave(ledger.Change{DroppedInput: []string{"job_1"}})
	for id, want := range map[string][]byte{"job_1": nil, "job_2": {1}} {
		left := readValue(w, func(r ledger.Reader) (job.Job, error) { return r.Job(everything, id) })
		require.Equal(w, want, left.Command.Input, id)
	}
	placed := waitingJob("job_3", "org_1", "pol_1", day)
	placed.Array.ID = "arr_2"
	placed, err := placed.Apply(job.Schedule, "", day)
	require.NoError(w, err)
	w.mustSave(ledger.Change{Jobs: []job.Job{placed}})
	require.Equal(w, map[string]int{"arr_2": 1}, readValue(w, func(r ledger.Reader) (map[string]int, error) {
		return r.ArrayAttempts([]string{"arr_1", "arr_2"})
	}), "those alone that have GPUs")
	ranksAreFound(w, n.ID)
	outputIsFound(w)
	runsAreFound(w, over)
	startsAreScored(w)
}

// runsAreFound saves jobs that ended one after the other, of which one was too short to say anything, and the last was
// cancelled after an attempt of a day.
func runsAreFound(w *world, first job.Job) {
	for i, length := range []time.Duration{time.Hour, time.Second, 3 * time.Hour, 5 * time.Hour} {
		j := waitingJob("job_run"+string(rune('a'+i)), "org_1", "pol_1", day)
		j.Name, j.SubmittedBy = "sweep", "key_1"
		if length >= 3*time.Hour {
			j.Predicted = job.Predicted{P10: time.Hour, P50: 2 * time.Hour, P90: 4 * time.Hour}
		}
		for _, e := range []job.Event{job.Schedule, job.Start} {
			var err error
			j, err = j.Apply(e, "", day)
			require.NoError(w, err)
		}
		end, reason := job.Fail, job.Exit
		if length == 5*time.Hour {
			end, reason = job.Cancel, job.Asked
			j.Attempt, j.GPUTime = 2, 29*time.Hour
		}
		j, err := j.Apply(end, reason, day.Add(length))
		require.NoError(w, err)
		w.mustSave(ledger.Change{Jobs: []job.Job{j}})
	}
	runOf := func(length time.Duration) runtimes.Run {
		return runtimes.Run{User: "key_1", Name: "sweep", GPUs: 1, Length: length}
	}
	cancelled := runOf(24 * time.Hour)
	cancelled.Cut = true
	earlier, says := runtimes.RunOf(first)
	require.True(w, says)
	w.readSnapshot(func(r ledger.Reader) error {
		got, err := r.JobRuns("org_1", "sweep", 9)
		require.NoError(w, err)
		require.Equal(w, []runtimes.Run{cancelled, runOf(3 * time.Hour), runOf(time.Hour)}, got)
		got, err = r.JobRuns("org_1", "sweep", 1)
		require.NoError(w, err)
		require.Equal(w, []runtimes.Run{cancelled}, got)
		got, err = r.JobRuns("org_1", "", 9)
		require.NoError(w, err)
		require.Len(w, got, 4)
		require.Contains(w, got, earlier)
		got, err = r.JobRuns("org_404", "", 9)
		require.NoError(w, err)
		require.Empty(w, got)
		scores, err := r.JobPredictions(ledger.Scope{OrganizationID: "org_1"}, day, day.Add(24*time.Hour))
		require.Len(w, scores, 1)
		require.Equal(w, "pol_1", scores[0].PoolID)
		require.Equal(w, 2, scores[0].Runtimes.N)
		require.InDelta(w, 1, scores[0].Runtimes.Inside, 0)
		require.InDelta(w, 0.5, scores[0].Runtimes.ByMedian, 0)
		require.NoError(w, err)
		scores, err = r.JobPredictions(everything, day.Add(24*time.Hour), day.Add(48*time.Hour))
		require.Empty(w, scores)
		return err
	})
}

func ranksAreFound(w *world, nodeID string) {
	first := job.Rank{JobID: "job_1", Attempt: 1, NodeID: nodeID, State: job.Ordered}
	second := job.Rank{JobID: "job_1", Attempt: 1, Rank: 1, NodeID: nodeID, State: job.RankRunning}
	w.mustSave(ledger.Change{JobRanks: []job.Rank{second, first}})
	w.mustSave(ledger.Change{Daemons: []ledger.Daemon{{NodeID: nodeID, KeyID: "its key"}}})
	third := job.Rank{JobID: "job_2", Attempt: 2, NodeID: nodeID, State: job.RankEnded}
	earlier := third
	earlier.Attempt = 1 // the attempt of another job's that is asked for
	w.mustSave(ledger.Change{JobRanks: []job.Rank{third, earlier}})
	second.State, second.End = job.RankEnded, job.End{Code: job.Exit, ExitCode: 3, Ran: true}
	w.mustSave(ledger.Change{JobRanks: []job.Rank{second}})
	w.readSnapshot(func(r ledger.Reader) error {
		got, err := r.JobRanks("job_1", 1)
		require.NoError(w, err)
		require.Equal(w, []job.Rank{first, second}, got)
		on, err := r.RanksOn(nodeID)
		require.NoError(w, err)
		require.Equal(w, []job.Rank{first}, on, "what has ended is on no node")
		work, err := r.WorkOn(nodeID)
		require.NoError(w, err)
		require.Equal(w, []string{"pol_1", nodeID, "its key"}, []string{work.Pool.ID, work.Node.ID, work.Daemon.KeyID})
		require.Equal(w, on, work.Ranks)
		_, err = r.WorkOn("nod_404")
		require.ErrorIs(w, err, ledger.ErrNotFound)
		none, err := r.JobRanks("job_1", 2)
		require.NoError(w, err)
		require.Empty(w, none)
		wanted := []ledger.JobAttempt{{JobID: "job_1", Attempt: 1}, {JobID: "job_2", Attempt: 2},
			{JobID: "job_3", Attempt: 1}}
		several, err := r.RanksOfAttempts(wanted)
		require.NoError(w, err)
		require.Equal(w, map[ledger.JobAttempt][]job.Rank{wanted[0]: {first, second}, wanted[1]: {third}}, several)
		none2, err := r.RanksOfAttempts(nil)
		require.Empty(w, none2)
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
