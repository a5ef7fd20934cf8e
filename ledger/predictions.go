package ledger

import (
	"math"
	"time"
)

// JobStartForecast is when a job that waits was first predicted to start. It is kept with the job, and never changes.
// It is forgotten where somebody holds or edits the job.
type JobStartForecast struct {
	JobID  string
	MadeAt time.Time
	Band
}

// JobPredictions are how predictions of jobs came out that were made in one pool.
type JobPredictions struct {
	PoolID   string
	Starts   PredictionScore // of those that ran in their first attempt: the wait, from when it was predicted
	Runtimes PredictionScore // of those that ended by themselves
}

// PredictionScore is how some predictions of times came out.
type PredictionScore struct {
	N        int
	Inside   float64       // the share that came between the 10th and the 90th percentile
	ByMedian float64       // the share that came by the median
	Error    time.Duration // by how much the median was wrong, on average
	Pinball  time.Duration // loss of the three quantiles, on average
	Measured time.Duration // what was predicted, on average
}

// RuntimesOf is how the predictions of runtimes came out in all of some pools together.
func RuntimesOf(all []JobPredictions) (sum PredictionScore) {
	for _, p := range all {
		sum.N += p.Runtimes.N
	}
	for _, p := range all {
		if p.Runtimes.N == 0 {
			continue
		}
		part := float64(p.Runtimes.N) / float64(sum.N)
		share := func(d time.Duration) time.Duration { return time.Duration(math.Round(part * float64(d))) }
		sum.Inside += part * p.Runtimes.Inside
		sum.ByMedian += part * p.Runtimes.ByMedian
		sum.Error += share(p.Runtimes.Error)
		sum.Pinball += share(p.Runtimes.Pinball)
		sum.Measured += share(p.Runtimes.Measured)
	}
	return sum
}
