package ledger

import "time"

// JobStartForecast is when a job that waits was first predicted to start. It is kept with the job, and never changes. It
// is forgotten where somebody holds or edits the job.
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
	Error    time.Duration // by how much the median was wrong, on average
	Pinball  time.Duration // loss of the three quantiles, on average
	Measured time.Duration // what was predicted, on average
}
