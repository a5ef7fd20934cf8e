package ledgertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/ledger"
)

// openForecast returns an open forecast of the hour after day.
func openForecast(id, org string) ledger.Forecast {
	return ledger.Forecast{
		ID: id, OrganizationID: org, PoolID: "pol_1", MadeBy: "key_1", Source: ledger.ByLLM,
		ReasonCode: "announced_work",
		Model:      "qwen3:32b", PromptHash: "aa", EvidenceHash: "bb", IssuedAt: day.Add(-time.Minute), Start: day,
		End:      day.Add(time.Hour),
		Said:     forecast.Summary{P10: 1, P50: 4, P90: 8, Any: 0.8125, Mean: 4.5},
		Baseline: ledger.FractionOf(0.25), Influence: ledger.FractionOf(0.125), RecordedAt: day.Add(-time.Second),
	}
}

// cameOut returns the forecast after so many GPUs arrived.
func cameOut(f ledger.Forecast, gpus int) ledger.Forecast {
	happened := gpus > 0
	f.Outcome = ledger.ForecastOutcome{
		GPUs: gpus, CountedAt: day.Add(61 * time.Minute), ClosedAt: day.Add(62 * time.Minute),
		Score: f.Said.Evaluate(gpus),
	}
	if p, ok := f.Baseline.Value(); ok {
		f.Outcome.BaselineBrier = ledger.FractionOf(forecast.Brier(p, happened))
	}
	return f
}

func listForecasts(w *world, s ledger.Scope, f ledger.ForecastFilter, limit int) []ledger.Forecast {
	w.Helper()
	return readValue(w, func(r ledger.Reader) ([]ledger.Forecast, error) { return r.Forecasts(s, f, limit) })
}

// aForecastIsClosedOnce: what was said stays, and so does what came of it.
func aForecastIsClosedOnce(w *world) {
	saveGround(w)
	said := []ledger.Forecast{openForecast("fct_1", "org_1"), openForecast("fct_2", "org_1")}
	w.mustSave(ledger.Change{Forecasts: said})
	stored := listForecasts(w, everything, ledger.ForecastFilter{}, 0)
	require.Len(w, stored, 2)
	require.Greater(w, stored[0].Seq, stored[1].Seq, "the latest first")
	open := stored[1]
	closed := cameOut(open, 8)
	lying := closed
	lying.Said, lying.Source, lying.Baseline = forecast.Summary{P10: 8, P50: 8, P90: 8, Any: 1, Mean: 8},
		ledger.ByPerson, ledger.Fraction{}
	w.mustSave(ledger.Change{ClosedForecasts: []ledger.Forecast{lying}})
	require.Equal(w, []ledger.Forecast{closed},
		listForecasts(w, everything, ledger.ForecastFilter{IDs: []string{"fct_1"}}, 0))
	for name, again := range map[string]ledger.Change{
		"the same":      {ClosedForecasts: []ledger.Forecast{closed}},
		"another":       {ClosedForecasts: []ledger.Forecast{cameOut(open, 0)}},
		"one of two":    {ClosedForecasts: []ledger.Forecast{cameOut(stored[0], 1), cameOut(open, 1)}},
		"never existed": {ClosedForecasts: []ledger.Forecast{cameOut(openForecast("fct_9", "org_1"), 1)}},
	} {
		require.ErrorIs(w, w.save(again), ledger.ErrConflict, name)
	}
	require.Equal(w, []ledger.Forecast{stored[0], closed}, listForecasts(w, everything, ledger.ForecastFilter{}, 0),
		"nothing of a failed change is there")
	taken := []ledger.Forecast{openForecast("fct_3", "org_1"), openForecast("fct_1", "org_1")}
	require.ErrorIs(w, w.save(ledger.Change{Forecasts: taken}), ledger.ErrTaken)
	require.Len(w, listForecasts(w, everything, ledger.ForecastFilter{}, 0), 2)
	// Another tenant has ids of its own.
	w.mustSave(ledger.Change{Forecasts: []ledger.Forecast{openForecast("fct_1", "org_2")}})
}

func forecastsAreFiltered(w *world) {
	saveGround(w)
	list := make([]ledger.Forecast, 5)
	for i := range list {
		list[i] = openForecast(fmt.Sprintf("fct_%d", i), "org_1")
		list[i].Start, list[i].End = day.Add(time.Duration(i)*time.Hour), day.Add(time.Duration(i+1)*time.Hour)
	}
	list[0].Source, list[1].PoolID, list[2].MadeBy, list[3].OrganizationID = ledger.ByPerson, "pol_2", "key_2", "org_2"
	list[4] = cameOut(list[4], 3)
	w.mustSave(ledger.Change{Forecasts: list})
	all := listForecasts(w, everything, ledger.ForecastFilter{}, 0)
	for name, c := range map[string]struct {
		scope  ledger.Scope
		filter ledger.ForecastFilter
		limit  int
		want   []string
	}{
		"all":    {everything, ledger.ForecastFilter{}, 0, []string{"fct_4", "fct_3", "fct_2", "fct_1", "fct_0"}},
		"page":   {everything, ledger.ForecastFilter{Before: all[1].Seq}, 2, []string{"fct_2", "fct_1"}},
		"tenant": {ledger.Scope{OrganizationID: "org_2"}, ledger.ForecastFilter{}, 0, []string{"fct_3"}},
		"hidden": {ledger.Scope{OrganizationID: "org_2"}, ledger.ForecastFilter{IDs: []string{"fct_1"}}, 0,
			[]string{}},
		"source": {everything, ledger.ForecastFilter{Source: ledger.ByPerson}, 0, []string{"fct_0"}},
		"pool":   {everything, ledger.ForecastFilter{PoolID: "pol_2"}, 0, []string{"fct_1"}},
		"key":    {everything, ledger.ForecastFilter{MadeBy: "key_2"}, 0, []string{"fct_2"}},
		"ids": {everything, ledger.ForecastFilter{IDs: []string{"fct_0", "fct_3", "fct_x"}}, 1,
			[]string{"fct_3", "fct_0"}},
		"open":   {everything, ledger.ForecastFilter{State: ledger.ForecastOpen}, 1, []string{"fct_3"}},
		"closed": {everything, ledger.ForecastFilter{State: ledger.ForecastClosed}, 0, []string{"fct_4"}},
		"from":   {everything, ledger.ForecastFilter{From: day.Add(3 * time.Hour)}, 0, []string{"fct_4", "fct_3"}},
		"to":     {everything, ledger.ForecastFilter{To: day.Add(time.Hour)}, 0, []string{"fct_0"}},
		"from, to": {everything, ledger.ForecastFilter{From: day.Add(time.Hour), To: day.Add(2 * time.Hour)}, 0,
			[]string{"fct_1"}},
	} {
		got := listForecasts(w, c.scope, c.filter, c.limit)
		require.Equal(w, c.want, namesOf(got, func(f ledger.Forecast) string { return f.ID }), name)
	}
	for since, want := range map[time.Time]int{day.Add(-time.Second): 4, day.Add(-time.Second + time.Microsecond): 0} {
		got := readValue(w, func(r ledger.Reader) (int, error) { return r.ForecastCount("key_1", since) })
		require.Equal(w, want, got)
	}
}

// manyForecasts: a whole batch is written and closed just like a few.
func manyForecasts(w *world) {
	saveGround(w)
	list := make([]ledger.Forecast, ledger.MaxForecasts)
	ids := make([]string, len(list))
	for i := range list {
		list[i] = openForecast(fmt.Sprintf("fct_%04d", i), "org_1")
		ids[i] = list[i].ID
	}
	w.mustSave(ledger.Change{Forecasts: list})
	stored := listForecasts(w, everything, ledger.ForecastFilter{IDs: ids}, 0)
	require.Len(w, stored, len(list))
	for i := range stored {
		stored[i] = cameOut(stored[i], i%10)
	}
	w.mustSave(ledger.Change{ClosedForecasts: stored})
	require.Equal(w, stored, listForecasts(w, everything, ledger.ForecastFilter{IDs: ids}, 0))
}

// calibrationsMatch compares the sums with sums made by hand.
func calibrationsMatch(w *world) {
	saveGround(w)
	var list []ledger.Forecast
	add := func(source ledger.ForecastSource, probability float64, gpus int, change ...func(*ledger.Forecast)) {
		f := openForecast(fmt.Sprintf("fct_%03d", len(list)), "org_1")
		f.Source, f.Said.Any = source, probability
		for _, c := range change {
			c(&f)
		}
		list = append(list, cameOut(f, gpus))
	}
	later := func(f *ledger.Forecast) { f.Start, f.End = day.Add(time.Hour), day.Add(2*time.Hour) }
	theirs := func(f *ledger.Forecast) { f.OrganizationID = "org_2" }
	alone := func(f *ledger.Forecast) { f.Baseline, f.Influence = ledger.Fraction{}, ledger.Fraction{} }
	for i, p := range []float64{0, 0.0999, 0.1, 0.25, 0.3, 0.3, 0.7, 0.9, 0.95,
		1} { // the edges belong to the bin above
		add(ledger.ByLLM, p, []int{0, 0, 9, 0, 4, 0, 4, 4, 0, 8}[i])
	}
	add(ledger.ByLLM, 0.95, 5, alone)
	add(ledger.ByStatistics, 0.5, 0, alone)
	add(ledger.ByLLM, 0.95, 5, later)
	add(ledger.ByLLM, 0.95, 5, theirs)
	w.mustSave(ledger.Change{Forecasts: append(list, openForecast("fct_open", "org_1"))})

	filter := ledger.CalibrationFilter{From: day, To: day.Add(time.Hour)}
	ask := func(s ledger.Scope, f ledger.CalibrationFilter) []ledger.Calibration {
		return readValue(w, func(r ledger.Reader) ([]ledger.Calibration, error) { return r.Calibrations(s, f) })
	}
	own := ask(ledger.Scope{OrganizationID: "org_1"}, filter)
	require.Len(w, own, 2)
	sameCalibration(w, byHand(list[:11]), own[0])
	sameCalibration(w, byHand(list[11:12]), own[1])
	filter.Source = ledger.ByLLM
	require.Equal(w, own[:1], ask(ledger.Scope{OrganizationID: "org_1"}, filter))
	require.Equal(w, 12, ask(everything, filter)[0].N)
	filter.Source = ledger.ByRule
	require.Empty(w, ask(everything, filter))
}

// byHand adds up forecasts of one source.
func byHand(list []ledger.Forecast) ledger.Calibration {
	c := ledger.Calibration{Source: list[0].Source, N: len(list), Influence: list[len(list)-1].Influence}
	var scores forecast.Scorer
	for _, f := range list {
		scores.Add(f.Outcome.Score)
		bin := &c.Bins[min(int(f.Said.Any*10), 9)]
		bin.N++
		bin.Said += f.Said.Any
		if f.Outcome.GPUs > 0 {
			bin.Seen++
		}
		if b, ok := f.Outcome.BaselineBrier.Value(); ok {
			c.Compared++
			c.BaselineBrier += b
			c.BesideBrier += f.Outcome.Score.Brier
		}
	}
	c.Pinball, c.Brier, c.LogLoss, c.Inside = scores.Pinball, scores.Brier, scores.LogLoss, scores.Inside
	for i := range c.Bins {
		if n := float64(c.Bins[i].N); n > 0 {
			c.Bins[i].Said /= n
			c.Bins[i].Seen /= n
		}
	}
	if n := float64(c.Compared); n > 0 {
		c.BaselineBrier /= n
		c.BesideBrier /= n
	}
	return c
}

// sameCalibration compares counts exactly, and means up to their last digits.
func sameCalibration(w *world, want, got ledger.Calibration) {
	w.Helper()
	numbers := func(c ledger.Calibration) []float64 {
		all := []float64{c.Pinball, c.Brier, c.LogLoss, c.Inside, c.BaselineBrier, c.BesideBrier}
		for _, b := range c.Bins {
			all = append(all, b.Said, b.Seen)
		}
		return all
	}
	require.InDeltaSlice(w, numbers(want), numbers(got), 1e-9)
	counts := func(c ledger.Calibration) []int {
		all := []int{c.N, c.Compared}
		for _, b := range c.Bins {
			all = append(all, b.N)
		}
		return all
	}
	require.Equal(w, counts(want), counts(got))
	require.Equal(w, want.Source, got.Source)
	require.Equal(w, want.Influence, got.Influence)
}
