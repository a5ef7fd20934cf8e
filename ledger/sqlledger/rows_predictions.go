package sqlledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// keepStartForecasts keeps when jobs were first predicted to start. Their rows have no new version: nothing that they
// do has changed.
func keepStartForecasts(s changeWriter, all []ledger.JobStartForecast) {
	for _, f := range all {
		s.execStatement("keeping when job "+f.JobID+" should start", "UPDATE jobs SET start_told_at = ?, start_p10 = ?, "+
			"start_p50 = ?, start_p90 = ? WHERE id = ? AND start_told_at = 0", nil, toMicros(f.MadeAt), toMicros(f.P10),
			toMicros(f.P50), toMicros(f.P90), f.JobID)
	}
}

// forgetStartForecasts forgets when jobs were predicted to start.
func forgetStartForecasts(s changeWriter, ids []string) {
	for _, id := range ids {
		s.execStatement("forgetting when job "+id+" should start", "UPDATE jobs SET start_told_at = 0, start_p10 = 0, "+
			"start_p50 = 0, start_p90 = 0 WHERE id = ? AND start_told_at > 0", nil, id)
	}
}

// scoreRow is how the predictions of one kind came out in a pool, in microseconds.
type scoreRow struct {
	PoolID   string
	N        int
	Inside   float64
	ByMedian float64
	Error    float64
	Pinball  float64
	Measured float64
}

func (r scoreRow) toValue() ledger.PredictionScore {
	micros := func(x float64) time.Duration { return time.Duration(math.Round(x)) * time.Microsecond }
	return ledger.PredictionScore{N: r.N, Inside: r.Inside, ByMedian: r.ByMedian, Error: micros(r.Error),
		Pinball: micros(r.Pinball), Measured: micros(r.Measured)}
}

// predicted are the columns of what was predicted, and of what it was.
type predicted struct{ p10, p50, p90, was string }

var (
	predictedStart   = predicted{"start_p10", "start_p50", "start_p90", "started_at"}
	predictedRuntime = predicted{"predicted_p10", "predicted_p50", "predicted_p90", "(ended_at - started_at)"}
)

// scores are the averages of all that is scored. Their types are named so that no database counts in whole numbers.
func (p predicted) scores(measured string) string {
	loss := func(chance float64, quantile string) string {
		return fmt.Sprintf("CASE WHEN %[1]s >= %[2]s THEN %[3]g * (%[1]s - %[2]s) ELSE %[4]g * (%[2]s - %[1]s) END",
			p.was, quantile, chance, 1-chance)
	}
	mean := func(what, name string) string { return "AVG(CAST(" + what + " AS DOUBLE PRECISION)) AS " + name }
	return "pool_id, COUNT(*) AS n, " + mean("CASE WHEN "+p.was+" BETWEEN "+p.p10+" AND "+p.p90+
		" THEN 1 ELSE 0 END", "inside") + ", " + mean("CASE WHEN "+p.was+" <= "+p.p50+" THEN 1 ELSE 0 END", "by_median") +
		", " + mean("ABS("+p.was+" - "+p.p50+")", "error") + ", " +
		mean("("+loss(0.1, p.p10)+" + "+loss(0.5, p.p50)+" + "+loss(0.9, p.p90)+") / 3", "pinball") + ", " +
		mean(measured, "measured")
}

func (r jobReader) JobPredictions(s ledger.Scope, from, to time.Time) ([]ledger.JobPredictions, error) {
	var starts, lengths []scoreRow
	db := r.ownRows(s).Table("jobs").Select(predictedStart.scores("started_at - start_told_at")).
		Where("start_told_at > 0 AND attempt = 1 AND started_at > 0").Where("started_at >= ? AND started_at < ?",
		toMicros(from), toMicros(to))
	if err := scanScores(db, &starts); err != nil {
		return nil, err
	}
	db = r.ownRows(s).Table("jobs").Select(predictedRuntime.scores("ended_at - started_at")).Where(hasRun).
		Where(saysHowLong).Where(endedItself).Where("predicted_p90 > 0").
		Where("ended_at >= ? AND ended_at < ?", toMicros(from), toMicros(to))
	if err := scanScores(db, &lengths); err != nil {
		return nil, err
	}
	all := map[string]ledger.JobPredictions{}
	for _, row := range starts {
		all[row.PoolID] = ledger.JobPredictions{PoolID: row.PoolID, Starts: row.toValue()}
	}
	for _, row := range lengths {
		is := all[row.PoolID]
		is.PoolID, is.Runtimes = row.PoolID, row.toValue()
		all[row.PoolID] = is
	}
	return slices.SortedFunc(maps.Values(all), func(a, b ledger.JobPredictions) int {
		return cmp.Compare(a.PoolID, b.PoolID)
	}), nil
}

func scanScores(db *gorm.DB, into *[]scoreRow) error {
	return wrapError("scoring predictions of jobs", db.Group("pool_id").Scan(into).Error)
}
