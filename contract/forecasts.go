package contract

import "time"

// AgentForecast is what one source expects of one window of a pool, as it is
// sent before the window begins. Like AgentPlan it holds identifiers, numbers,
// enums, hashes and times; there is no field for words. A model is named by its
// identifier alone, and what it read only by a hash.
type AgentForecast struct {
	ID                  string    `json:"id" pattern:"^fct_[0-9a-hjkmnp-tv-z]{26}$" maxLength:"30"`
	PoolID              string    `json:"pool_id" pattern:"^pol_[0-9a-hjkmnp-tv-z]{26}$" maxLength:"30"`
	Source              string    `json:"source" enum:"statistics,llm,extractor,rule,person"`
	ReasonCode          string    `json:"reason_code"`
	IssuedAt            time.Time `json:"issued_at" doc:"When it was made; not after start."`
	Start               time.Time `json:"start"`
	End                 time.Time `json:"end"`
	GPUs                Quantiles `json:"gpus" doc:"That will be asked for in the window."`
	Probability         float64   `json:"probability" minimum:"0" maximum:"1"`
	BaselineProbability *float64  `json:"baseline_probability,omitempty" minimum:"0" maximum:"1" nullable:"false"`
	Influence           *float64  `json:"influence,omitempty" minimum:"0" maximum:"1" nullable:"false"`
	Model               string    `json:"model,omitempty" pattern:"^[a-z0-9._:/-]{1,64}$" maxLength:"64"`
	PromptHash          string    `json:"prompt_hash,omitempty" pattern:"^[0-9a-f]{64}$" maxLength:"64"`
	EvidenceHash        string    `json:"evidence_hash,omitempty" pattern:"^[0-9a-f]{64}$" maxLength:"64"`
}

// Quantiles are a number of GPUs that is not known yet.
type Quantiles struct {
	P10  int     `json:"p10" minimum:"0" maximum:"1000000"`
	P50  int     `json:"p50" minimum:"0" maximum:"1000000"`
	P90  int     `json:"p90" minimum:"0" maximum:"1000000"`
	Mean float64 `json:"mean" minimum:"0" maximum:"1000000"`
}

// AgentForecasts are forecasts to be recorded, all or none.
type AgentForecasts struct {
	Forecasts []AgentForecast `json:"forecasts" minItems:"1" maxItems:"1000" nullable:"false"`
}

// AgentOutcome is how a forecast came out.
type AgentOutcome struct {
	ID        string    `json:"id" pattern:"^fct_[0-9a-hjkmnp-tv-z]{26}$" maxLength:"30"`
	GPUs      int       `json:"gpus" minimum:"0" maximum:"100000" doc:"That were asked for in its window."`
	CountedAt time.Time `json:"counted_at" doc:"When they were counted; not before the window was over."`
}

// AgentOutcomes are outcomes to be recorded, all or none.
type AgentOutcomes struct {
	Outcomes []AgentOutcome `json:"outcomes" minItems:"1" maxItems:"1000" nullable:"false"`
}

// Recorded tells what became of a batch of forecasts or outcomes.
type Recorded struct {
	New   int `json:"new" doc:"That were recorded now."`
	Known int `json:"known" doc:"That were recorded before, with the same content."`
}

// Forecast is a recorded forecast. What it said never changes.
type Forecast struct {
	ID                  string           `json:"id"`
	OrganizationID      string           `json:"organization_id"`
	OrganizationName    string           `json:"organization_name,omitempty"`
	PoolID              string           `json:"pool_id"`
	PoolName            string           `json:"pool_name,omitempty"`
	MadeBy              string           `json:"made_by" doc:"Id of the key."`
	MadeByName          string           `json:"made_by_name,omitempty" doc:"Of the key or schedule."`
	State               string           `json:"state" enum:"open,closed"`
	Source              string           `json:"source" enum:"statistics,llm,extractor,rule,person"`
	ReasonCode          string           `json:"reason_code"`
	IssuedAt            time.Time        `json:"issued_at" doc:"As stated by its sender."`
	RecordedAt          time.Time        `json:"recorded_at" doc:"When it came here."`
	Start               time.Time        `json:"start"`
	End                 time.Time        `json:"end"`
	GPUs                Quantiles        `json:"gpus"`
	Probability         float64          `json:"probability"`
	BaselineProbability *float64         `json:"baseline_probability,omitempty"`
	Influence           *float64         `json:"influence,omitempty"`
	Model               string           `json:"model,omitempty"`
	PromptHash          string           `json:"prompt_hash,omitempty"`
	EvidenceHash        string           `json:"evidence_hash,omitempty"`
	Outcome             *ForecastOutcome `json:"outcome,omitempty" doc:"Absent while it is open."`
}

// ForecastOutcome is how a forecast came out, and its scores. Of all of them
// less is better.
type ForecastOutcome struct {
	GPUs          int       `json:"gpus"`
	CountedAt     time.Time `json:"counted_at" doc:"As stated by its sender."`
	ClosedAt      time.Time `json:"closed_at" doc:"When it was recorded."`
	Pinball       float64   `json:"pinball" doc:"Mean pinball loss of the three quantiles, in GPUs."`
	Brier         float64   `json:"brier" doc:"Squared error of the probability."`
	LogLoss       float64   `json:"log_loss" doc:"Minus the logarithm of the probability of what happened."`
	Inside        bool      `json:"inside" doc:"The number lay from p10 to p90."`
	BaselineBrier *float64  `json:"baseline_brier,omitempty" doc:"Squared error of the baseline's probability."`
}

// CalibrationReport says how far each source's forecasts can be believed.
type CalibrationReport struct {
	From       time.Time           `json:"from"`
	To         time.Time           `json:"to"`
	Definition string              `json:"definition" doc:"What the numbers mean, for people."`
	Sources    []SourceCalibration `json:"sources" nullable:"false" doc:"Those with closed forecasts."`
	Runtimes   *RuntimeCalibration `json:"runtimes,omitempty"`
	Jobs       []JobCalibration    `json:"jobs" nullable:"false" doc:"By pool."`
}

// JobCalibration is how predictions of jobs came out that were made in a pool.
type JobCalibration struct {
	PoolID   string           `json:"pool_id"`
	PoolName string           `json:"pool_name,omitempty"`
	Starts   *TimeCalibration `json:"starts,omitempty" doc:"Of jobs that had to wait."`
	Runtimes *TimeCalibration `json:"runtimes,omitempty"`
}

// TimeCalibration is how predictions of a kind came out, in seconds.
type TimeCalibration struct {
	Interval           IntervalCoverage `json:"interval"`
	MeanAbsoluteError  float64          `json:"mean_absolute_error_seconds" doc:"Of the likely time; less is better."`
	MeanPinball        float64          `json:"mean_pinball_seconds" doc:"Less is better."`
	MeanMeasuredLength float64          `json:"mean_seconds" doc:"What was predicted: the wait, or the run."`
}

// RuntimeCalibration is how long jobs ran whose runtime was predicted when they got their GPUs.
type RuntimeCalibration struct {
	Interval IntervalCoverage `json:"interval"`
	ByLikely float64          `json:"by_likely" doc:"The share that was over by the likely time; 0.5 was said."`
}

// SourceCalibration is how the closed forecasts of one source came out.
type SourceCalibration struct {
	Source      string           `json:"source" enum:"statistics,llm,extractor,rule,person"`
	N           int              `json:"n" doc:"Closed forecasts."`
	MeanPinball float64          `json:"mean_pinball" doc:"In GPUs; less is better."`
	Brier       float64          `json:"brier" doc:"Mean; less is better."`
	LogLoss     float64          `json:"log_loss" doc:"Mean; less is better."`
	Interval    IntervalCoverage `json:"interval"`
	Baseline    *AgainstBaseline `json:"baseline,omitempty" doc:"Absent when no forecast named one."`
	Influence   *float64         `json:"influence,omitempty"`
	Bins        []ReliabilityBin `json:"bins" nullable:"false" doc:"Ten equal parts of stated probability."`
}

// IntervalCoverage compares how often an interval was to hold the number, and how
// often it did.
type IntervalCoverage struct {
	Said float64 `json:"said" doc:"0.8: from p10 to p90."`
	Seen float64 `json:"seen"`
	N    int     `json:"n"`
}

// AgainstBaseline compares a source with what statistics alone said of the same
// windows.
type AgainstBaseline struct {
	N           int      `json:"n" doc:"Forecasts that named a baseline."`
	Brier       float64  `json:"brier" doc:"Mean, of the baseline."`
	SourceBrier float64  `json:"source_brier" doc:"Mean, of the source in the same forecasts."`
	Uplift      float64  `json:"uplift" doc:"How much lower the source's is; below 0 it did harm."`
	Skill       *float64 `json:"skill,omitempty"`
}

// ReliabilityBin is one part of a reliability diagram: of forecasts that stated a
// probability from From up to To, the mean of what they said and the share that
// came true.
type ReliabilityBin struct {
	From float64  `json:"from"`
	To   float64  `json:"to"`
	N    int      `json:"n"`
	Said *float64 `json:"said,omitempty" doc:"Absent without forecasts."`
	Seen *float64 `json:"seen,omitempty" doc:"Absent without forecasts."`
}

// forecastsTags are the rests of tags that are too long for their lines.
var forecastsTags = tags{
	"AgentForecast.ID": `patternDescription:"fct_ and 26 characters" doc:"An id that you choose, the same for the ` +
		`same forecast: a forecast sent twice is kept once."`,
	"AgentForecast.PoolID": `patternDescription:"the id of a pool"`,
	"AgentForecast.ReasonCode": `enum:"recurring_pattern,recent_rate,queue_backlog,announced_work,scheduled_work,` +
		`other"`,
	"AgentForecast.Probability":         `doc:"The chance that any GPU is asked for."`,
	"AgentForecast.BaselineProbability": `doc:"What statistics alone said; a source is judged by what it adds."`,
	"AgentForecast.Influence":           `doc:"The weight that the source had; 0 when it was demoted."`,
	"AgentForecast.Model": `patternDescription:"1 to 64 lower-case letters, digits and . _ : / -" doc:"The ` +
		`model's identifier, if one contributed."`,
	"AgentForecast.PromptHash": `patternDescription:"a SHA-256 in lower-case hex" doc:"Of the wording that the ` +
		`model was asked with."`,
	"AgentForecast.EvidenceHash": `patternDescription:"a SHA-256 in lower-case hex" doc:"A hash of what was read, ` +
		`keyed with a secret of yours because short texts can be guessed; the text itself stays with the agent."`,
	"AgentOutcome.ID": `patternDescription:"fct_ and 26 characters"`,
	"Forecast.ReasonCode": `enum:"recurring_pattern,recent_rate,queue_backlog,announced_work,scheduled_work,` +
		`other"`,
	"CalibrationReport.Runtimes": `doc:"Of jobs that ended in the period; absent where none was ` +
		`predicted, or one source was asked for."`,
	"SourceCalibration.Influence": `doc:"The weight stated in its latest forecast; 0 when it was demoted."`,
	"AgainstBaseline.Skill": `doc:"Uplift as a share of the baseline's: 1 is perfect, 0 no better than the ` +
		`baseline; absent when the baseline was perfect."`,
}
