package predict

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/prompts"
)

// ForecasterConfig configures a Forecaster.
type ForecasterConfig struct {
	Name      string        // the model's name as configured; stored with forecasts
	MaxTokens int           // of an answer; default 4000
	MaxLines  int           // the latest lines that are sent; default and most 100
	Timeout   time.Duration // of one call; default 60 s
}

// WithDefaults returns c with its zero fields filled in.
func (c ForecasterConfig) WithDefaults() ForecasterConfig {
	if c.MaxTokens == 0 {
		c.MaxTokens = 4000
	}
	if c.MaxLines == 0 {
		c.MaxLines = 100
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	return c
}

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c ForecasterConfig) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("name: missing")
	case c.MaxTokens < 1 || c.MaxTokens > 100_000:
		return errors.New("max_tokens: want 1 to 100000")
	case c.MaxLines < 1 || c.MaxLines > 100:
		return errors.New("max_lines: want 1 to 100")
	case c.Timeout < 0:
		return errors.New("timeout: must not be negative")
	default:
		return nil
	}
}

// Forecaster asks a language model for evidence, within a budget, and checks
// what it answers. A wrong answer gets one more try, which quotes what was wrong
// with it.
type Forecaster struct {
	cfg    ForecasterConfig
	model  llm.Model
	budget *llm.Budget
	random io.Reader
}

// NewForecaster returns a Forecaster. random gives the delimiters that log lines
// must not be able to guess: outside of tests it is crypto/rand.Reader.
func NewForecaster(c ForecasterConfig, model llm.Model, budget *llm.Budget, random io.Reader) (*Forecaster, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the forecaster configuration: %w", err)
	}
	return &Forecaster{cfg: c, model: model, budget: budget, random: random}, nil
}

// Spent returns what the model has cost today, by UTC.
func (f *Forecaster) Spent() llm.Caps { return f.budget.State().Spent }

// question is what a Forecaster is asked: only numbers, and lines that were
// redacted.
type question struct {
	now     time.Time
	windows []Window
	largest int
	maxGPUs int
	lines   []redact.Scrubbed
}

// askModel returns the evidence in the lines, or an *llm.Error.
func (f *Forecaster) askModel(ctx context.Context, q question) (Evidence, error) {
	mistake := ""
	for try := 0; ; try++ {
		evidence, err := f.askOnce(ctx, q, mistake)
		if err == nil || try == 1 || llm.KindOf(err) != llm.KindInvalid {
			return evidence, err
		}
		mistake = err.Error()
	}
}

// askOnce makes one call.
func (f *Forecaster) askOnce(ctx context.Context, q question, mistake string) (Evidence, error) {
	prompt, err := f.renderPrompt(q, mistake)
	if err != nil {
		return Evidence{}, &llm.Error{Kind: llm.KindDenied, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	evidence := Evidence{Model: f.cfg.Name, PromptHash: prompt.Hash}
	_, err = f.budget.Ask(ctx, f.model, llm.Request{
		System: prompt.System, User: prompt.User, SchemaName: "forecast", Schema: answerSchema(),
		MaxTokens: f.cfg.MaxTokens,
	}, func(r llm.Reply) error {
		records, err := decodeAnswer(r.Text, q.from(), q.to())
		evidence.Records = records
		return err
	})
	if err != nil {
		return Evidence{}, err
	}
	return evidence, nil
}

func (f *Forecaster) renderPrompt(q question, mistake string) (prompts.Prompt, error) {
	var delimiter [16]byte
	if _, err := io.ReadFull(f.random, delimiter[:]); err != nil {
		return prompts.Prompt{}, fmt.Errorf("drawing a delimiter: %w", err)
	}
	data := prompts.Forecast{
		Now: formatTime(q.now), From: formatTime(q.from()), To: formatTime(q.to()),
		MaxGPUs: q.maxGPUs, MaxRecords: maxRecords, LargestJob: q.largest,
		Delimiter: hex.EncodeToString(delimiter[:]), Mistake: mistake,
	}
	for _, r := range Reasons() {
		data.Reasons = append(data.Reasons, string(r))
	}
	for _, w := range q.windows {
		s := w.Forecast.Summary()
		data.Windows = append(data.Windows, prompts.Window{
			Start: formatTime(w.Start), End: formatTime(w.End), P10: s.P10, P50: s.P50, P90: s.P90, Any: s.Any,
		})
	}
	for _, line := range q.lines[max(0, len(q.lines)-f.cfg.MaxLines):] {
		data.Lines = append(data.Lines, line.String())
	}
	return prompts.Render("forecast", "v1", data)
}

func (q question) from() time.Time { return q.windows[0].Start }
func (q question) to() time.Time   { return q.windows[len(q.windows)-1].End }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
