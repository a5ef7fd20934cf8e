package jobs

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// bandText is in how long something is predicted to happen, from the earliest to the latest.
func bandText(f *contract.JobForecast, now time.Time) string {
	if f == nil {
		return "-"
	}
	early, late := roughText(f.Earliest.Sub(now)), roughText(f.Latest.Sub(now))
	if early == late {
		return "about " + early
	}
	return early + " to " + late
}

// roughText is about how long something is: a prediction is right to the minute at best.
func roughText(d time.Duration) string {
	step := time.Second
	switch {
	case d >= time.Hour:
		step = 5 * time.Minute
	case d >= 2*time.Minute:
		step = time.Minute
	}
	return format.Duration(max(0, d).Round(step))
}

// predictedStart is when a job that waits is predicted to start, and from what.
func predictedStart(x contract.Job, now time.Time) string {
	return predictedText(x.PredictedStart, x, contract.JobPending, now)
}

// predictedEnd is when a job that runs is predicted to end, and from what.
func predictedEnd(x contract.Job, now time.Time) string {
	return predictedText(x.PredictedEnd, x, contract.JobRunning, now)
}

func predictedText(f *contract.JobForecast, x contract.Job, in string, now time.Time) string {
	switch {
	case x.State != in:
		return "-"
	case f == nil && x.Unpredicted != "":
		return "unknown: " + x.Unpredicted
	case f == nil:
		return "-"
	}
	return fmt.Sprintf("in %s, likely %s: %s", bandText(f, now), format.Time(f.Likely), format.Plain(f.Basis))
}

// basisText is what a predicted start rests on, or why there is none.
func basisText(x contract.Job) string {
	if x.PredictedStart == nil {
		return format.OrDash(x.Unpredicted)
	}
	return cmp.Or(x.PredictedStart.Basis, "-")
}
