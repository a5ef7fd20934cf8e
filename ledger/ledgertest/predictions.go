package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// startsAreScored saves when two jobs were predicted to start, of which one starts within what was said, the other
// later, a third that still waits, and one of which that was forgotten.
func startsAreScored(w *world) {
	told := func(id string, at time.Time) ledger.JobStartForecast {
		return ledger.JobStartForecast{JobID: id, MadeAt: at, Band: ledger.Band{P10: at.Add(10 * time.Minute),
			P50: at.Add(20 * time.Minute), P90: at.Add(time.Hour)}}
	}
	begun := day.Add(7 * 24 * time.Hour)
	for id, after := range map[string]time.Duration{"job_told1": 30 * time.Minute, "job_told2": 2 * time.Hour,
		"job_told3": 0, "job_told4": 9 * time.Hour} {
		j := waitingJob(id, "org_1", "pol_1", begun)
		w.mustSave(ledger.Change{Jobs: []job.Job{j}})
		w.mustSave(ledger.Change{JobStarts: []ledger.JobStartForecast{told(id, begun)}})
		w.mustSave(ledger.Change{JobStarts: []ledger.JobStartForecast{told(id, begun.Add(time.Hour))}}) // it has one
		if id == "job_told4" {
			w.mustSave(ledger.Change{ForgetStarts: []string{id, "job_404"}})
		}
		if after == 0 {
			continue
		}
		j.Version = 1
		for _, e := range []job.Event{job.Schedule, job.Start} {
			var err error
			j, err = j.Apply(e, "", begun.Add(after))
			require.NoError(w, err)
		}
		w.mustSave(ledger.Change{Jobs: []job.Job{j}})
	}
	w.readSnapshot(func(r ledger.Reader) error {
		got, err := r.JobPredictions(everything, begun, begun.Add(24*time.Hour))
		require.NoError(w, err)
		const minute = time.Minute
		// Of half an hour the three quantiles lose 2, 5 and 3 minutes; of two hours 11, 50 and 54.
		require.Equal(w, []ledger.JobPredictions{{PoolID: "pol_1", Starts: ledger.PredictionScore{N: 2, Inside: 0.5,
			Error: 55 * minute, Pinball: 125 * minute / 6, Measured: 75 * minute}}}, got)
		return nil
	})
}
