package sqlledger

import (
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/ledger"
)

type forecastRow struct {
	Seq            int64   `gorm:"column:seq;primaryKey;autoIncrement"`
	ID             string  `gorm:"column:id"`
	OrganizationID string  `gorm:"column:organization_id"`
	PoolID         string  `gorm:"column:pool_id"`
	MadeBy         string  `gorm:"column:made_by"`
	Source         string  `gorm:"column:source"`
	ReasonCode     string  `gorm:"column:reason_code"`
	Model          string  `gorm:"column:model"`
	PromptHash     string  `gorm:"column:prompt_hash"`
	EvidenceHash   string  `gorm:"column:evidence_hash"`
	Issued         int64   `gorm:"column:issued_at"`
	Start          int64   `gorm:"column:window_start"`
	End            int64   `gorm:"column:window_end"`
	P10            int     `gorm:"column:p10"`
	P50            int     `gorm:"column:p50"`
	P90            int     `gorm:"column:p90"`
	Mean           float64 `gorm:"column:mean"`
	Probability    float64 `gorm:"column:probability"`
	Baseline       float64 `gorm:"column:baseline"`
	Influence      float64 `gorm:"column:influence"`
	Recorded       int64   `gorm:"column:recorded_at"`
	GPUs           int     `gorm:"column:gpus"`
	Counted        int64   `gorm:"column:counted_at"`
	Closed         int64   `gorm:"column:closed_at"`
	Pinball        float64 `gorm:"column:pinball"`
	Brier          float64 `gorm:"column:brier"`
	LogLoss        float64 `gorm:"column:log_loss"`
	Inside         bool    `gorm:"column:inside"`
	BaselineBrier  float64 `gorm:"column:baseline_brier"`
}

func (forecastRow) TableName() string { return "forecasts" }

func forecastToRow(f ledger.Forecast) forecastRow {
	o := f.Outcome
	return forecastRow{
		Seq: f.Seq, ID: f.ID, OrganizationID: f.OrganizationID, PoolID: f.PoolID, MadeBy: f.MadeBy,
		Source: string(f.Source), ReasonCode: f.ReasonCode,
		Model: f.Model, PromptHash: f.PromptHash, EvidenceHash: f.EvidenceHash, Issued: toMicros(f.IssuedAt),
		Start: toMicros(f.Start), End: toMicros(f.End),
		P10: f.Said.P10, P50: f.Said.P50, P90: f.Said.P90, Mean: f.Said.Mean, Probability: f.Said.Any,
		Baseline: f.Baseline.Float64(), Influence: f.Influence.Float64(), Recorded: toMicros(f.RecordedAt),
		GPUs: o.GPUs, Counted: toMicros(o.CountedAt), Closed: toMicros(o.ClosedAt), Pinball: o.Score.Pinball,
		Brier:   o.Score.Brier,
		LogLoss: o.Score.LogLoss, Inside: o.Score.Inside, BaselineBrier: o.BaselineBrier.Float64(),
	}
}

func (r forecastRow) toValue() (ledger.Forecast, error) {
	return ledger.Forecast{
		Seq: r.Seq, ID: r.ID, OrganizationID: r.OrganizationID, PoolID: r.PoolID, MadeBy: r.MadeBy,
		Source:     ledger.ForecastSource(r.Source),
		ReasonCode: r.ReasonCode, Model: r.Model, PromptHash: r.PromptHash, EvidenceHash: r.EvidenceHash,
		IssuedAt: toTime(r.Issued), Start: toTime(r.Start), End: toTime(r.End),
		Said:     forecast.Summary{P10: r.P10, P50: r.P50, P90: r.P90, Any: r.Probability, Mean: r.Mean},
		Baseline: ledger.FractionOf(r.Baseline), Influence: ledger.FractionOf(r.Influence),
		RecordedAt: toTime(r.Recorded),
		Outcome: ledger.ForecastOutcome{
			GPUs: r.GPUs, CountedAt: toTime(r.Counted), ClosedAt: toTime(r.Closed),
			BaselineBrier: ledger.FractionOf(r.BaselineBrier),
			Score:         forecast.Score{Pinball: r.Pinball, Brier: r.Brier, LogLoss: r.LogLoss, Inside: r.Inside},
		},
	}, nil
}

// closeForecasts writes outcomes over rows that have none. It is the only
// statement that changes a forecast, and names no column of what was said.
func closeForecasts(s changeWriter, closed []ledger.Forecast) {
	for _, f := range closed {
		r := forecastToRow(f)
		s.execStatement("closing forecast "+f.ID, `
			UPDATE forecasts SET gpus = ?, counted_at = ?, closed_at = ?, pinball = ?, brier = ?, log_loss = ?,`+
			` inside = ?, baseline_brier = ?
			WHERE seq = ? AND closed_at = 0`, ledger.ErrConflict,
			int64(r.GPUs), r.Counted, r.Closed, r.Pinball, r.Brier, r.LogLoss, r.Inside, r.BaselineBrier, r.Seq)
	}
}
