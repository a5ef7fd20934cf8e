package predict

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/core/evidence"
)

// Question is what a model is asked about a tenant's log lines. It shares nothing that changes with the Predictor that
// made it, so that the Predictor may be used while a model takes its time.
type Question struct {
	question
	forecaster *Forecaster
}

// MaxLines is how many log lines a Question can hold: none without a model.
func (p *Predictor) MaxLines() int {
	if p.forecaster == nil {
		return 0
	}
	return p.forecaster.cfg.MaxLines
}

// Answer is what a model said to a Question. The zero value is that of nobody who was asked.
type Answer struct {
	asked    question
	evidence Evidence
	note     *Note
}

// Question returns what to ask the model about new lines, or nil: without lines it can know nothing that statistics do
// not, and without a model there is nobody to ask.
func (p *Predictor) Question(now time.Time, name string, lines []redact.Scrubbed) *Question {
	if p.forecaster == nil || len(lines) == 0 {
		return nil
	}
	return &Question{forecaster: p.forecaster, question: question{
		now: now, windows: p.statisticalBaseline(now, p.tenants[name]), largest: p.largestJob(name),
		maxGPUs: p.cfg.MaxGPUs,
		lines:   lines,
	}}
}

// Ask asks the model, which may take as long as ctx and its timeout allow. It needs no lock on the Predictor. Nil asks
// nobody.
func (q *Question) Ask(ctx context.Context) Answer {
	if q == nil {
		return Answer{}
	}
	evidence, err := q.forecaster.askModel(ctx, q.question)
	if err != nil {
		return Answer{asked: q.question, note: &Note{Kind: llm.KindOf(err), Err: err}}
	}
	return Answer{asked: q.question, evidence: evidence}
}

// Unanswered returns the lines of a question that nobody answered, to be asked again, and how long the model is not to
// be asked; no lines if there was an answer, even a wrong one.
func (a Answer) Unanswered() (lines []redact.Scrubbed, pause time.Duration) {
	if a.note == nil || !llm.IsUnanswered(a.note.Err) {
		return nil, 0
	}
	return a.asked.lines, llm.RetryAfterOf(a.note.Err)
}

// ingestAnswer keeps what a model has answered until its time is over: a plan states the whole, so what was
// forgotten would be given up. It returns what was announced for the first time and is to be decided about later.
func (p *Predictor) ingestAnswer(now time.Time, name string, a Answer) (announced []Taken) {
	if len(a.evidence.Records) == 0 {
		return nil
	}
	for _, c := range p.tenantEvidence(name).addClaims(p.trust.nameClaims(a.asked.now, a.evidence, a.asked.lines)) {
		if at, _, _ := p.cfg.Terms.Hold(c.evidenceRecord(name, evidence.MaxGPUs)); at.After(now) {
			t := c.taken(evidence.Decision{})
			t.DecidedAt = at
			announced = append(announced, t)
		}
	}
	return announced
}
