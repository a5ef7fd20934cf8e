package place_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
)

const width = 6 * time.Minute

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// newPrediction expects, in neighbouring windows, low to high GPUs each with a
// chance.
func newPrediction(windows ...forecast.Forecast) predict.Prediction {
	p := predict.Prediction{Issued: monday, JobGPUs: 1}
	for i, f := range windows {
		start := monday.Add(time.Duration(i) * width)
		p.Windows = append(p.Windows, predict.Window{Start: start, End: start.Add(width), Forecast: f,
			Reason: predict.Recurring})
	}
	return p
}

// choicesKeeping makes choices that keep so many GPUs in neighbouring windows.
func choicesKeeping(kept ...int) []place.Choice {
	choices := make([]place.Choice, len(kept))
	for i, w := range newPrediction(make([]forecast.Forecast, len(kept))...).Windows {
		w.Forecast = forecast.Event(0.5, kept[i], kept[i], kept[i])
		choices[i] = place.Choice{Window: w, GPUs: kept[i]}
	}
	return choices
}

func newWindow(from, to, gpus int) contract.AgentWindow {
	return contract.AgentWindow{
		Start: monday.Add(time.Duration(from) * width), End: monday.Add(time.Duration(to) * width), GPUs: gpus,
		Probability: 0.5, ReasonCode: contract.ReasonRecurringPattern,
	}
}

func TestWindowsJoin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kept []int
		want []contract.AgentWindow
	}{
		"nothing":                {nil, []contract.AgentWindow{}},
		"nothing worth keeping":  {[]int{0, 0}, []contract.AgentWindow{}},
		"one level for all time": {[]int{2, 2, 2}, []contract.AgentWindow{newWindow(0, 3, 2)}},
		"a peak on a base":       {[]int{1, 3, 1}, []contract.AgentWindow{newWindow(0, 3, 1), newWindow(1, 2, 2)}},
		"a gap":                  {[]int{1, 0, 1}, []contract.AgentWindow{newWindow(0, 1, 1), newWindow(2, 3, 1)}},
		"stairs": {[]int{1, 2, 3}, []contract.AgentWindow{newWindow(0, 3, 1), newWindow(1, 3, 1),
			newWindow(2, 3, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, place.Windows(choicesKeeping(tc.kept...)))
		})
	}
}

func TestWindowsSayWhatTheChoicesSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kept := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 24).Draw(t, "kept")
		windows := place.Windows(choicesKeeping(kept...))
		require.NotNil(t, windows, "the wire knows no null")
		sums := make([]int, len(kept))
		seen := map[[2]time.Time]bool{}
		for _, w := range windows {
			require.True(t, w.Start.Before(w.End))
			require.Positive(t, w.GPUs)
			require.True(t, w.Probability >= 0 && w.Probability <= 1, w.Probability)
			require.False(t, seen[[2]time.Time{w.Start, w.End}], "windows that run alike are one")
			seen[[2]time.Time{w.Start, w.End}] = true
			for i := range sums {
				if at := monday.Add(time.Duration(i) * width); !at.Before(w.Start) && at.Before(w.End) {
					sums[i] += w.GPUs
				}
			}
		}
		require.Equal(t, kept, sums)
	})
}

func TestChooseKeepsWhatStatisticsHoldNow(t *testing.T) {
	t.Parallel()
	sure := forecast.Event(1, 4, 4, 4)
	p := newPrediction(sure, sure, sure)
	p.Now = predict.Now{Start: monday.Add(time.Minute), End: monday.Add(width + time.Minute),
		Forecast: forecast.Event(0.7, 6, 6, 6), Held: forecast.Held{Levels: 6}}
	for limit, want := range map[int]int{8: 6, 5: 5} {
		choices := place.Choose(p, place.Config{MaxGPUs: limit}.WithDefaults())
		require.Len(t, choices, 3, "what is left of the second window, and the third")
		require.Equal(t, want, choices[0].GPUs)
		require.Equal(t, p.Now.Held.Explain(), choices[0].Why)
		require.Zero(t, choices[1].GPUs+choices[2].GPUs, "times to come wait until they are near")
		end := p.Now.Start
		for _, c := range choices {
			require.Equal(t, end, c.Window.Start, "no gaps")
			end = c.Window.End
		}
		require.Equal(t, monday.Add(3*width), end)
		windows := place.Windows(choices)
		require.Len(t, windows, 1)
		require.Equal(t, contract.AgentWindow{Start: p.Now.Start, End: p.Now.End, GPUs: want, Probability: 0.7,
			ReasonCode: contract.ReasonRecentRate}, windows[0])
	}
}

func TestReasonsThatMayLeave(t *testing.T) {
	t.Parallel()
	allowed := []string{contract.ReasonRecurringPattern, contract.ReasonAnnouncedWork, contract.ReasonQueueBacklog,
		contract.ReasonRecentRate, contract.ReasonOther}
	used := map[string]bool{}
	for _, reason := range append(predict.Reasons(), predict.Recent, "what the log says") {
		choices := choicesKeeping(1)
		choices[0].Window.Reason = reason
		code := place.Windows(choices)[0].ReasonCode
		require.Contains(t, allowed, code, reason)
		used[code] = true
	}
	require.Len(t, used, len(allowed))
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c := place.Config{}.WithDefaults()
	require.NoError(t, c.Validate())
	require.Equal(t, place.Config{WaitWorth: 32, MaxGPUs: 8}, c)
	for field, change := range map[string]func(*place.Config){
		"wait_worth": func(c *place.Config) { c.WaitWorth = -1 },
		"boot":       func(c *place.Config) { c.Boot = 25 * time.Hour },
		"max_gpus":   func(c *place.Config) { c.MaxGPUs = forecast.MaxLevels + 1 },
	} {
		wrong := c
		change(&wrong)
		require.ErrorContains(t, wrong.Validate(), field)
	}
}

// A hold keeps GPUs for its minutes only, within the limit, and never takes any
// away.
func TestRaiseCutsWindowsAtHolds(t *testing.T) {
	t.Parallel()
	hold := func(from, to float64, gpus int) predict.Hold {
		at := func(n float64) time.Time { return monday.Add(time.Duration(n * float64(width))) }
		return predict.Hold{Start: at(from), End: at(to), GPUs: gpus, Reason: predict.Announced, Chance: 0.4}
	}
	for name, tc := range map[string]struct {
		holds []predict.Hold
		want  []int // levels of the pieces
	}{
		"none":              {nil, []int{1, 3, 0}},
		"in the middle":     {[]predict.Hold{hold(0.25, 0.75, 2)}, []int{1, 2, 1, 3, 0}},
		"over windows":      {[]predict.Hold{hold(0.5, 2.5, 2)}, []int{1, 2, 3, 2, 0}},
		"less than is kept": {[]predict.Hold{hold(1, 2, 2)}, []int{1, 3, 0}},
		"two":               {[]predict.Hold{hold(0, 1, 2), hold(0, 0.5, 4)}, []int{4, 2, 3, 0}},
		"beyond the limit":  {[]predict.Hold{hold(2, 3, 99)}, []int{1, 3, 5}},
		"outside":           {[]predict.Hold{hold(-2, 0, 2), hold(3, 9, 2)}, []int{1, 3, 0}},
	} {
		var got []int
		end := monday
		for _, c := range place.Raise(choicesKeeping(1, 3, 0), tc.holds, 5) {
			require.Equal(t, end, c.Window.Start, name)
			end = c.Window.End
			got = append(got, c.GPUs)
		}
		require.Equal(t, monday.Add(3*width), end, name)
		require.Equal(t, tc.want, got, name)
	}
	raised := place.Windows(place.Raise(choicesKeeping(0, 0), []predict.Hold{hold(0.5, 1.5, 2)}, 5))
	require.Len(t, raised, 1)
	require.Equal(t, 2, raised[0].GPUs)
	require.Equal(t, 0.4, raised[0].Probability)
	require.Equal(t, contract.ReasonAnnouncedWork, raised[0].ReasonCode)
}
