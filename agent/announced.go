package agent

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/phrase"
)

// tellEvidence logs what the model announces, and later whether that is held and why, each once.
func (a *Agent) tellEvidence(p predict.Prediction) {
	for _, t := range p.Taken {
		a.cfg.Logger.Info(describeTaken(t))
	}
}

// describeTaken says what was announced, how likely it is by the source's record, and what was decided.
func describeTaken(t predict.Taken) string {
	verb, why := "announced", t.Decision.Explain()
	switch {
	case !t.DecidedAt.IsZero():
		verb, why = "announces", "whether they are held is decided at "+t.DecidedAt.UTC().Format(time.RFC3339)
	case t.Decision.Verdict == "":
		why = "hold none: no job was seen yet, which would bound what may be announced"
	}
	return fmt.Sprintf("the model %s %s from %s to %s (%s) with a chance of %.2f, which by its record is %.2f; %s",
		verb, phrase.Count(t.GPUs, "GPU"), t.Start.UTC().Format(time.RFC3339), t.End.UTC().Format(time.RFC3339), t.Reason,
		t.Stated, t.Chance, why)
}
