package predict_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func newPredictor(t *testing.T) *predict.Predictor {
	t.Helper()
	p, err := predict.New(predict.Config{Series: forecast.Config{}, MaxGPUs: 64,
		Terms: evidence.Terms{WaitPrice: 300, GPUPrice: 1, Boot: 5 * time.Minute}}, nil)
	require.NoError(t, err)
	return p
}

// feedBursts tells of a burst of jobs every half hour until noon, of which the last
// goes on. The ends come in an order of their own.
func feedBursts(t *testing.T, p *predict.Predictor, order *rand.Rand) {
	t.Helper()
	var ends []func()
	for at := noon.Add(-10 * time.Hour); at.Before(noon); at = at.Add(30 * time.Minute) {
		for n := range 10 {
			submitted := at.Add(time.Duration(20+n) * time.Minute)
			if submitted.After(noon) {
				continue
			}
			require.NoError(t, p.Observe(noon, "lab", submitted, 2, forecast.Traits{}))
			if over := submitted.Add(25 * time.Minute); !over.After(noon) {
				ends = append(ends, func() { p.Finish("lab", submitted, time.Time{}, 2, over, forecast.Traits{}) })
			}
		}
	}
	order.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	for _, end := range ends {
		end()
	}
}

func observeNow(t *testing.T, p *predict.Predictor, at time.Time) predict.Now {
	t.Helper()
	return p.Predict(at, "lab", predict.Answer{}).Now
}

func TestTheOrderInWhichEndsAreToldChangesNothing(t *testing.T) {
	t.Parallel()
	first, second := newPredictor(t), newPredictor(t)
	feedBursts(t, first, rand.New(rand.NewPCG(1, 1)))
	feedBursts(t, second, rand.New(rand.NewPCG(2, 2)))
	now := observeNow(t, first, noon)
	require.Equal(t, now, observeNow(t, second, noon))
	require.Equal(t, 20, now.Demand, "ten jobs run")
	require.Positive(t, now.Held.Levels, "in the middle of a burst")
	require.True(t, now.Next.After(noon))
	require.True(t, now.End.After(now.Next))
}

func TestWhatIsHeldSurvivesARestart(t *testing.T) {
	t.Parallel()
	p, again := newPredictor(t), newPredictor(t)
	feedBursts(t, p, rand.New(rand.NewPCG(1, 1)))
	held := observeNow(t, p, noon).Held.Levels
	require.NoError(t, p.Observe(noon, "lab", noon.Add(time.Minute), 2, forecast.Traits{})) // told, and not looked at yet
	data, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, again.Restore(data))
	later := noon.Add(time.Minute)
	now := observeNow(t, again, later)
	require.Equal(t, 22, now.Demand)
	// The looks that wait for what comes true are lost, so chances may differ a little.
	require.InDelta(t, observeNow(t, p, later).Forecast.AtLeast(1), now.Forecast.AtLeast(1), 0.05)
	require.Equal(t, held-2, now.Held.Before, "the job took its GPUs out of those held")
	require.Equal(t, 2, again.DemandRise("lab", noon, noon.Add(10*time.Minute), 20))
	require.Zero(t, again.DemandRise("lab", noon, later, 20), "the end of a window is not in it")
}

func TestAnUnknownTenantHoldsNothing(t *testing.T) {
	t.Parallel()
	now := observeNow(t, newPredictor(t), noon)
	require.Zero(t, now.Held.Levels)
	require.True(t, now.Next.IsZero())
}

// What fails is tried again four minutes later, each time.
func TestWhatFailedIsHeldFor(t *testing.T) {
	t.Parallel()
	p := newPredictor(t)
	as := forecast.Traits{Class: 7}
	broken := as
	broken.Failed = true
	at := noon.Add(-40 * time.Hour)
	for ; at.Before(noon); at = at.Add(4 * time.Hour) {
		again := at.Add(7 * time.Minute)
		require.NoError(t, p.Observe(noon, "lab", at, 4, as))
		p.Finish("lab", at, time.Time{}, 4, at.Add(3*time.Minute), broken)
		require.NoError(t, p.Observe(noon, "lab", again, 4, as))
		p.Finish("lab", again, time.Time{}, 4, again.Add(time.Hour), as)
	}
	require.NoError(t, p.Observe(at, "lab", at, 4, as))
	require.Equal(t, 4, observeNow(t, p, at).Demand)
	over := at.Add(3 * time.Minute)
	p.Finish("lab", at, time.Time{}, 4, over, broken)
	now := observeNow(t, p, over)
	require.Zero(t, now.Demand)
	require.Greater(t, now.Forecast.AtLeast(4), 0.7)
	require.GreaterOrEqual(t, now.Held.Levels, 4)
}
