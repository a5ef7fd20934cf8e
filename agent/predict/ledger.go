package predict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/ids"
)

// Entry is one forecast that was acted on. It is never changed: what happened is
// an Outcome beside it.
type Entry struct {
	ID         string           `json:"id"`
	Tenant     string           `json:"tenant"`
	Issued     time.Time        `json:"issued"`
	Start      time.Time        `json:"start"`
	End        time.Time        `json:"end"`
	Forecast   forecast.Summary `json:"forecast"`
	Source     Source           `json:"source"`
	Reason     Reason           `json:"reason"`
	Model      string           `json:"model,omitempty"`
	PromptHash string           `json:"prompt_hash,omitempty"`
	Statement  *Statement       `json:"said,omitempty"` // what evidence said of the window
	Base       *int             `json:"base,omitempty"` // if not nil, how far demand rises above this is forecast
}

// Outcome closes an Entry with what happened.
type Outcome struct {
	ID     string         `json:"id"` // of the Entry
	Source Source         `json:"source"`
	Closed time.Time      `json:"closed"`
	GPUs   int            `json:"gpus"` // that arrived in the window
	Score  forecast.Score `json:"score"`
	// Without is how statistics alone would have scored, where evidence spoke.
	Without *forecast.Score `json:"without,omitempty"`
	Entry   Entry           `json:"-"` // that it closes
}

// Entry returns the entry of the i-th window. The same prediction gives the same
// entry, so writing it twice writes it once.
func (p Prediction) Entry(i int) Entry {
	w := p.Windows[i]
	return Entry{
		ID:     ids.Derived(ids.Forecast, p.Tenant, p.Issued.UTC().Format(time.RFC3339Nano), formatTime(w.Start)),
		Tenant: p.Tenant, Issued: p.Issued.UTC(), Start: w.Start, End: w.End, Forecast: w.Forecast.Summary(),
		Source: w.Source, Reason: w.Reason, Model: w.Model, PromptHash: w.PromptHash, Statement: w.Statement,
	}
}

// watched is how long, by the forecaster's clock, a forecast of Now is held
// against what happens: a knot of its horizons.
const watched = 10 * time.Minute

// NowEntry returns the entry of what statistics expect from now on.
func (p Prediction) NowEntry() Entry {
	start := p.Now.Start
	if start.Before(p.Issued) {
		start = start.Add(time.Second)
	}
	base := p.Now.Demand
	return Entry{
		ID:     ids.Derived(ids.Forecast, p.Tenant, p.Issued.UTC().Format(time.RFC3339Nano), "now"),
		Tenant: p.Tenant, Issued: p.Issued.UTC(), Start: start, End: start.Add(p.Now.Watch),
		Forecast: p.Now.Watched.Summary(), Source: Statistics, Reason: Recent, Base: &base,
	}
}

// Watches reports whether a forecast of a tenant's Now is open: one at a time is
// enough to be judged by.
func (l *Ledger) Watches(tenant string) bool {
	return slices.ContainsFunc(l.open, func(e Entry) bool { return e.Base != nil && e.Tenant == tenant })
}

// line is one line of the file: an entry or an outcome.
type line struct {
	Entry   *Entry   `json:"entry,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Ledger keeps the forecasts that were acted on in a file of JSON lines that is
// only ever appended to, readable by its owner alone. It is not safe for
// concurrent use, by two processes either.
type Ledger struct {
	file    *os.File
	size    int64 // of the whole lines
	open    []Entry
	scores  map[Source]*forecast.Scorer
	without forecast.Scorer // of statistics, where evidence spoke
}

// OpenLedger opens the file at path, or makes it. A last line that a crash left
// unfinished is cut off; any other line that cannot be read is an error that
// names it.
func OpenLedger(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the forecast ledger: %w", err)
	}
	l := &Ledger{file: file, scores: map[Source]*forecast.Scorer{}}
	if err := l.loadLines(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the forecast ledger %s: %w", path, err), file.Close())
	}
	return l, nil
}

func (l *Ledger) loadLines() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if err := l.file.Chmod(0o600); err != nil {
		return err
	}
	data, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	number := 0
	for text := range bytes.Lines(whole) {
		number++
		var parsed line
		if err := json.Unmarshal(text, &parsed); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		l.applyLine(parsed)
	}
	l.size = int64(len(whole))
	return l.file.Truncate(l.size)
}

// applyLine takes a line that is in the file into memory.
func (l *Ledger) applyLine(x line) {
	if x.Entry != nil {
		l.open = append(l.open, *x.Entry)
	}
	if x.Outcome == nil {
		return
	}
	for i, e := range l.open {
		if e.ID == x.Outcome.ID {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			break
		}
	}
	if l.scores[x.Outcome.Source] == nil {
		l.scores[x.Outcome.Source] = &forecast.Scorer{}
	}
	l.scores[x.Outcome.Source].Add(x.Outcome.Score)
	if x.Outcome.Without != nil && x.Outcome.Source == LLM {
		l.without.Add(*x.Outcome.Without)
	}
}

// HasOpenForecast reports whether a forecast is open that was made of the same evidence
// about the same window: a source is judged once for what it says once.
func (l *Ledger) HasOpenForecast(e Entry) bool {
	for _, o := range l.open {
		if o.Statement != nil && e.Statement != nil &&
			o.Statement.Evidence == e.Statement.Evidence && o.Start.Equal(e.Start) &&
			o.Tenant == e.Tenant {
			return true
		}
	}
	return false
}

// Append writes entries. Those that are open already are left out.
func (l *Ledger) Append(entries ...Entry) error {
	known := map[string]bool{}
	for _, e := range l.open {
		known[e.ID] = true
	}
	var lines []line
	for _, e := range entries {
		if !known[e.ID] {
			known[e.ID] = true
			lines = append(lines, line{Entry: &e})
		}
	}
	return l.appendLines(lines)
}

// Close scores and closes every open entry whose window has ended by now, with
// the GPUs that actual says arrived in it, and returns the outcomes.
func (l *Ledger) Close(now time.Time, actual func(Entry) int) ([]Outcome, error) {
	var outcomes []Outcome
	var lines []line
	for _, e := range l.open {
		if e.End.After(now) {
			continue
		}
		gpus := actual(e)
		o := Outcome{ID: e.ID, Source: e.Source, Closed: now.UTC(), GPUs: gpus, Score: e.Forecast.Evaluate(gpus),
			Entry: e}
		if e.Statement != nil {
			without := e.Statement.Statistics.Evaluate(gpus)
			o.Without = &without
		}
		outcomes, lines = append(outcomes, o), append(lines, line{Outcome: &o})
	}
	if err := l.appendLines(lines); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// Summary is how the forecasts of a ledger have met what happened, so far.
type Summary struct {
	Open       int // whose outcome is not known yet
	Statistics forecast.Scorer
	LLM        forecast.Scorer // where evidence had a say
	Without    forecast.Scorer // statistics alone in the same windows, to hold LLM against
}

// Summary sums up the ledger.
func (l *Ledger) Summary() Summary {
	return Summary{Open: len(l.open), Statistics: l.scoreOf(Statistics), LLM: l.scoreOf(LLM), Without: l.without}
}

func (l *Ledger) scoreOf(s Source) forecast.Scorer {
	if l.scores[s] == nil {
		return forecast.Scorer{}
	}
	return *l.scores[s]
}

// Release closes the file.
func (l *Ledger) Release() error { return l.file.Close() }

// appendLines appends lines and flushes them to disk, all or none.
func (l *Ledger) appendLines(lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, x := range lines {
		if err := encoder.Encode(x); err != nil {
			return fmt.Errorf("encoding the forecast ledger: %w", err)
		}
	}
	_, err := l.file.Write(out.Bytes())
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the forecast ledger: %w", err), l.file.Truncate(l.size))
	}
	l.size += int64(out.Len())
	for _, x := range lines {
		l.applyLine(x)
	}
	return nil
}
