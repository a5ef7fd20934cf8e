package agent

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
)

// maxLogs is how many logs are told apart, so that a secret that spans lines of
// one is found between the lines of others.
const maxLogs = 1000

// noteLines keeps the newest log lines, without their secrets, for the model. Lines that no question can
// hold are only looked at for secrets that go on in the next line: logs grow faster than models read.
func (a *Agent) noteLines(items []source.Item) {
	room := a.cfg.Predict.MaxLines()
	if room == 0 {
		return
	}
	lines := a.textLines(foreignLines(items))
	for i, raw := range lines {
		stream := a.streamOf(raw.Source)
		if i < len(lines)-room {
			stream.Skip(raw.Text)
			continue
		}
		line, _ := stream.Redact(raw.Text)
		a.lines = append(a.lines, line)
	}
	a.lines = a.lines[max(0, len(a.lines)-room):]
}

// foreignLines are the log lines among the items but those about what Forewarm itself does: the agent
// would take its own acts for evidence.
func foreignLines(items []source.Item) (lines []source.Line) {
	for _, item := range items {
		if item.Line != nil && !history.IsOwnLine(item.Line.Text) {
			lines = append(lines, *item.Line)
		}
	}
	return lines
}

// textLines leaves out, in place, lines of binary files, which tell a model nothing: those with a NUL, and of a source
// that had such a line those that are no UTF-8.
func (a *Agent) textLines(lines []source.Line) []source.Line {
	return slices.DeleteFunc(lines, func(line source.Line) bool {
		if strings.IndexByte(line.Text, 0) < 0 {
			return a.binary[line.Source] && !utf8.ValidString(line.Text)
		}
		if !a.binary[line.Source] {
			if len(a.binary) >= maxLogs {
				clear(a.binary)
			}
			a.binary[line.Source] = true
			a.cfg.Logger.Warn("lines with NUL bytes are left out: is this a binary file that matches the pattern of a log?",
				"source", line.Source)
		}
		return true
	})
}

// streamOf is what redacts the lines of one source.
func (a *Agent) streamOf(name string) *redact.Stream {
	if a.logs[name] == nil {
		if len(a.logs) >= maxLogs {
			clear(a.logs)
		}
		a.logs[name] = a.cfg.Scrub.NewStream()
	}
	return a.logs[name]
}

// gathering is for how long lines are gathered for one question to the model:
// steps can come with every job, and questions cost.
const gathering = time.Minute

// gatheredLines are the lines for the model, if it is time to ask it.
func (a *Agent) gatheredLines(now time.Time) []redact.Scrubbed {
	if len(a.lines) == 0 || now.Sub(a.asked) < gathering || now.Before(a.pausedUntil) {
		return nil
	}
	lines := a.lines
	a.lines, a.asked = nil, now
	return lines
}

// keepUnanswered puts the lines of a question that nobody answered before those that came since, for the next
// question, and leaves the model alone for as long as it says. Of more than a question can hold, the newest are kept.
func (a *Agent) keepUnanswered(now time.Time, answer predict.Answer) {
	lines, pause := answer.Unanswered()
	if len(lines) == 0 {
		return
	}
	a.lines = slices.Concat(lines, a.lines)
	a.lines = a.lines[max(0, len(a.lines)-a.cfg.Predict.MaxLines()):]
	a.pausedUntil = now.Add(pause)
}

// tellNote logs why a model had no say, and when it is asked again.
func (a *Agent) tellNote(note *predict.Note, now time.Time) {
	if note == nil {
		return
	}
	more := []any{"kind", note.Kind, "error", note.Err}
	if a.pausedUntil.After(now) {
		more = append(more, "paused_until", a.pausedUntil.UTC().Format(time.RFC3339))
	}
	if kept := len(a.lines); kept > 0 && llm.IsUnanswered(note.Err) {
		more = append(more, "lines_kept", kept)
	}
	a.cfg.Logger.Warn("the model had no say", more...)
}
