package sqlledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/forewarm/forewarm/ledger"
)

// forecastReader reads forecasts and how they came out.
type forecastReader struct{ *connection }

// The conditions of the two states, in the words of the partial index.
var forecastStates = map[ledger.ForecastState]string{ledger.ForecastOpen: "closed_at = 0",
	ledger.ForecastClosed: "closed_at > 0"}

func (r forecastReader) Forecasts(s ledger.Scope, f ledger.ForecastFilter, limit int) ([]ledger.Forecast, error) {
	db := startedBetween(r.ownRows(s), f.From, f.To)
	for column, value := range map[string]string{"source": string(f.Source), "pool_id": f.PoolID, "made_by": f.MadeBy} {
		if value != "" {
			db = db.Where(column+" = ?", value)
		}
	}
	if f.Before > 0 {
		db = db.Where("seq < ?", f.Before)
	}
	if f.State != "" {
		db = db.Where(forecastStates[f.State])
	}
	const doing = "reading forecasts"
	if len(f.IDs) == 0 {
		return listRows[forecastRow](db.Order("seq DESC").Limit(pageSize(limit)), doing)
	}
	found, err := listRows[forecastRow](db.Where("id IN ("+r.store.dialect.elements+")", packList(f.IDs)), doing)
	// Sorted here: with an ORDER BY, PostgreSQL was seen to go through all rows of
	// the tenant in that order instead of looking for the ids.
	slices.SortFunc(found, func(a, b ledger.Forecast) int { return cmp.Compare(b.Seq, a.Seq) })
	return found, err
}

// startedBetween narrows forecasts to windows that start in a period.
func startedBetween(db *gorm.DB, from, to time.Time) *gorm.DB {
	if !from.IsZero() {
		db = db.Where("window_start >= ?", toMicros(from))
	}
	if !to.IsZero() {
		db = db.Where("window_start < ?", toMicros(to))
	}
	return db
}

func (r forecastReader) ForecastCount(keyID string, since time.Time) (int, error) {
	var n int64
	err := r.newQuery().Model(&forecastRow{}).Where("made_by = ? AND recorded_at >= ?", keyID,
		toMicros(since)).Count(&n).Error
	return int(n), wrapError("counting forecasts", err)
}

func (r forecastReader) Calibrations(s ledger.Scope, f ledger.CalibrationFilter) ([]ledger.Calibration, error) {
	db := startedBetween(r.ownRows(s), f.From,
		f.To).Table("forecasts").Where(forecastStates[ledger.ForecastClosed])
	if f.Source != "" {
		db = db.Where("source = ?", string(f.Source))
	}
	var rows []reliabilityRow
	if err := db.Select(reliabilitySums).Group("source, bin").Order("source, bin").Scan(&rows).Error; err != nil {
		return nil, wrapError("adding up forecasts", err)
	}
	found, latest := sumCalibrations(rows)
	return found, r.addInfluences(found, latest)
}

// reliabilityRow is the sum of one source's forecasts in one bin of the reliability
// diagram.
type reliabilityRow struct {
	Source        string  `gorm:"column:source"`
	Bin           int     `gorm:"column:bin"`
	N             int     `gorm:"column:n"`
	Said          float64 `gorm:"column:said"`
	Seen          float64 `gorm:"column:seen"`
	Pinball       float64 `gorm:"column:pinball"`
	Brier         float64 `gorm:"column:brier"`
	LogLoss       float64 `gorm:"column:log_loss"`
	Inside        float64 `gorm:"column:inside"`
	Compared      int     `gorm:"column:compared"`
	BaselineBrier float64 `gorm:"column:baseline_brier"`
	BesideBrier   float64 `gorm:"column:beside_brier"`
	Latest        int64   `gorm:"column:latest"`
}

// reliabilitySums are sums, not means, so that they can be added up over the bins.
var reliabilitySums = `source, ` + reliabilityBin() + ` AS bin, COUNT(*) AS n,
	SUM(probability) AS said, SUM(CASE WHEN gpus > 0 THEN 1.0 ELSE 0.0 END) AS seen,
	SUM(pinball) AS pinball, SUM(brier) AS brier, SUM(log_loss) AS log_loss,` +
	` SUM(CASE WHEN inside THEN 1.0 ELSE 0.0 END) AS inside,
	SUM(CASE WHEN baseline >= 0 THEN 1 ELSE 0 END) AS compared,
	SUM(CASE WHEN baseline >= 0 THEN baseline_brier ELSE 0.0 END) AS baseline_brier,
	SUM(CASE WHEN baseline >= 0 THEN brier ELSE 0.0 END) AS beside_brier, MAX(seq) AS latest`

// reliabilityBin is the number of a probability's bin. It is spelled out because
// the two databases round and truncate numbers differently.
func reliabilityBin() string {
	var b strings.Builder
	b.WriteString("CASE")
	for i := ledger.ReliabilityBins - 1; i > 0; i-- {
		fmt.Fprintf(&b, " WHEN probability >= %g THEN %d", float64(i)/ledger.ReliabilityBins, i)
	}
	return b.String() + " ELSE 0 END"
}

// sumCalibrations adds up the bins of each source, and returns the number of each
// source's latest forecast.
func sumCalibrations(rows []reliabilityRow) ([]ledger.Calibration, []int64) {
	var list []ledger.Calibration
	var latest []int64
	for _, row := range rows {
		if n := len(list); n == 0 || list[n-1].Source != ledger.ForecastSource(row.Source) {
			list, latest = append(list, ledger.Calibration{Source: ledger.ForecastSource(row.Source)}),
				append(latest, 0)
		}
		i := len(list) - 1
		row.addTo(&list[i])
		latest[i] = max(latest[i], row.Latest)
	}
	for i := range list {
		sumsToMeans(&list[i])
	}
	return list, latest
}

func (r reliabilityRow) addTo(c *ledger.Calibration) {
	c.N += r.N
	c.Pinball += r.Pinball
	c.Brier += r.Brier
	c.LogLoss += r.LogLoss
	c.Inside += r.Inside
	c.Compared += r.Compared
	c.BaselineBrier += r.BaselineBrier
	c.BesideBrier += r.BesideBrier
	n := float64(r.N)
	c.Bins[r.Bin] = ledger.ReliabilityBin{N: r.N, Said: r.Said / n, Seen: r.Seen / n}
}

// sumsToMeans turns sums into means.
func sumsToMeans(c *ledger.Calibration) {
	n := float64(c.N)
	for _, sum := range []*float64{&c.Pinball, &c.Brier, &c.LogLoss, &c.Inside} {
		*sum /= n
	}
	if c.Compared > 0 {
		c.BaselineBrier /= float64(c.Compared)
		c.BesideBrier /= float64(c.Compared)
	}
}

// addInfluences adds to each source the influence that its latest forecast tells.
func (r forecastReader) addInfluences(list []ledger.Calibration, latest []int64) error {
	if len(list) == 0 {
		return nil
	}
	var rows []forecastRow
	err := r.newQuery().Select("seq, influence").Where("seq IN ?", latest).Find(&rows).Error
	for _, row := range rows {
		for i := range list {
			if latest[i] == row.Seq {
				list[i].Influence = ledger.FractionOf(row.Influence)
			}
		}
	}
	return wrapError("reading the influence of sources", err)
}
