package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/forecast"
)

// A watcher of the demo is to see GPUs become warm before their sweep, whenever the
// demo was started.
func TestAgentHoldsBeforeEachSweep(t *testing.T) {
	for _, phase := range []time.Duration{0, 7, 13} {
		start := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC).Add(phase * time.Second)
		rhythm := NewRhythm(start)
		p := learnPast(t, rhythm, start)
		var jobs []Arrival
		for i := range 4 {
			jobs = append(jobs, rhythm.Period(i)...)
		}
		var since time.Time // from when on a sweep's GPUs are held
		for now := start; len(jobs) > 0; now = now.Add(look) {
			for len(jobs) > 0 && !jobs[0].At.After(now) {
				if jobs[0].GPUs == sweepGPUs {
					require.False(t, since.IsZero(), "%s finds nothing held", jobs[0].Name)
					assert.GreaterOrEqual(t, jobs[0].At.Sub(since), BootP95, "before %s", jobs[0].Name)
				}
				tell(t, p, now, jobs[0])
				jobs = jobs[1:]
			}
			held := p.Predict(now, "demo", predict.Answer{}).Now.Held.Levels >= sweepGPUs
			switch {
			case !held:
				since = time.Time{}
			case since.IsZero():
				since = now
			}
		}
	}
}

func learnPast(t *testing.T, rhythm Rhythm, now time.Time) *predict.Predictor {
	p, err := predict.New(predictConfig(), nil)
	require.NoError(t, err)
	for i := -past; i < 0; i++ {
		for _, job := range rhythm.Period(i) {
			tell(t, p, now, job)
		}
	}
	return p
}

func tell(t *testing.T, p *predict.Predictor, now time.Time, job Arrival) {
	require.NoError(t, p.Observe(now, "demo", job.At, job.GPUs, forecast.Traits{}))
	p.Finish("demo", job.At, time.Time{}, job.GPUs, job.At.Add(job.For), forecast.Traits{})
}
