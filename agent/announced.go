package agent

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/core/phrase"
)

// tellEvidence logs, once for each announcement of the model, whether it is held and why.
func (a *Agent) tellEvidence(p predict.Prediction) {
	for _, t := range p.Taken {
		a.cfg.Logger.Info(describeTaken(t))
	}
}

// describeTaken says what was announced, how likely it is by the source's record, and what was decided.
func describeTaken(t predict.Taken) string {
	why := t.Decision.Explain()
	if t.Decision.Verdict == "" {
		why = "hold none: no job was seen yet, which would bound what may be announced"
	}
	return fmt.Sprintf("the model announced %s from %s to %s (%s) with a chance of %.2f, which by its record is %.2f; %s",
		phrase.Count(t.GPUs, "GPU"), t.Start.UTC().Format(time.RFC3339), t.End.UTC().Format(time.RFC3339), t.Reason,
		t.Stated, t.Chance, why)
}
