package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/phrase"
)

// ForecastSource names what made a forecast. Each has a track record of its own.
type ForecastSource string

// The sources.
const (
	ByStatistics ForecastSource = "statistics" // history alone
	ByLLM        ForecastSource = "llm"        // a language model that read evidence
	ByExtractor  ForecastSource = "extractor"  // fixed patterns over evidence
	ByRule       ForecastSource = "rule"       // a simple rule, such as last week's same hour
	ByPerson     ForecastSource = "person"     // somebody said so
)

// ForecastSources lists the sources.
var ForecastSources = []ForecastSource{ByStatistics, ByLLM, ByExtractor, ByRule, ByPerson}

// Fraction is a number from 0 to 1 that may be missing. The zero value is.
type Fraction struct {
	known bool
	value float64
}

// FractionOf returns the fraction x; a negative one is missing.
func FractionOf(x float64) Fraction {
	if x < 0 {
		return Fraction{}
	}
	return Fraction{known: true, value: x}
}

// Value returns the number, and false when it is missing.
func (f Fraction) Value() (float64, bool) { return f.value, f.known }

// Float64 returns the number, or -1 when it is missing.
func (f Fraction) Float64() float64 {
	if !f.known {
		return -1
	}
	return f.value
}

// Forecast is what one source expected of one window in one pool, for one
// organization. What it said never changes. How it came out is set once.
//
// It leaves no event in the journal: it is a measurement, there are many, and
// nothing that anybody holds changes with it. Rows are kept without end; what
// bounds them is Config.ForecastsPerDay.
type Forecast struct {
	Seq            int64  // set by the store, in the order of their coming
	ID             string // chosen by the sender, one in its organization
	OrganizationID string
	PoolID         string
	MadeBy         string // key id
	Source         ForecastSource
	ReasonCode     string
	Model          string // which one, if a model had a say
	PromptHash     string // SHA-256 in hex of the wording it was asked with; may be empty
	EvidenceHash   string // SHA-256 in hex of what it was shown; may be empty
	IssuedAt       time.Time
	Start, End     time.Time // the window, half-open
	Said           forecast.Summary
	Baseline       Fraction // what statistics alone said of Said.Any
	Influence      Fraction // the share of the say that the source had when this was made
	RecordedAt     time.Time
	Outcome        ForecastOutcome // zero while it is open
}

// ForecastOutcome is how a forecast came out.
type ForecastOutcome struct {
	GPUs          int       // that arrived in the window, as the sender counted
	CountedAt     time.Time // when it counted
	ClosedAt      time.Time // when that was recorded; zero: the forecast is open
	Score         forecast.Score
	BaselineBrier Fraction // the Brier score of Baseline
}

// Closed reports whether it is known how the forecast came out.
func (f Forecast) Closed() bool { return !f.Outcome.ClosedAt.IsZero() }

// AsStated is what the sender said, without what was added here: two rows with
// the same id must have the same.
func (f Forecast) AsStated() Forecast {
	f.Seq, f.MadeBy, f.RecordedAt, f.Outcome = 0, "", time.Time{}, ForecastOutcome{}
	for _, t := range []*time.Time{&f.IssuedAt, &f.Start, &f.End} {
		*t = time.UnixMicro(t.UnixMicro()).UTC()
	}
	return f
}

// The bounds of forecasts.
const (
	// MaxForecasts is the most forecasts or outcomes in one request.
	MaxForecasts = 1000

	maxExpected  = 1_000_000           // GPUs; more is nonsense
	maxForecast  = 31 * 24 * time.Hour // the longest window
	lateForecast = 2 * time.Minute     // how long after its start a forecast may come, for retries
	clockSkew    = 5 * time.Minute     // how far a sender's clock may be ahead
)

// Reasons why a batch is refused as a whole; see BatchError.
var (
	// ErrDiffers: it was recorded before, with other content.
	ErrDiffers = errors.New("was recorded before with other content, and that is kept")
	// ErrNotOver: its window has not ended.
	ErrNotOver = errors.New("has a window that is not over yet")
)

// BatchError names the items of a batch because of which nothing of it was
// recorded.
type BatchError struct {
	Field string // of the batch: forecasts or outcomes
	Items []int  // their indexes
	Err   error  // ErrDiffers, ErrNotOver or ErrNotFound
}

// Error names the first item.
func (e *BatchError) Error() string { return fmt.Sprintf("%s[%d] %s", e.Field, e.Items[0], e.Err) }

// Unwrap returns the reason.
func (e *BatchError) Unwrap() error { return e.Err }

// TooManyError says that a key has added as much as it may until After has passed.
type TooManyError struct {
	Limit int
	After time.Duration
}

// Error names the limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("a key may add %s in a UTC day", phrase.Count(e.Limit, "forecast"))
}
