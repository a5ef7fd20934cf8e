package backtest

import (
	"fmt"
	"slices"
)

// prompt is the longest real wait that still counts as none, in seconds: a queue
// looks at its jobs every now and then, even with GPUs to spare.
const prompt = 60

// actualRow is what the history tells of real waits. What was paid for idling, it
// does not tell.
func (e *experiment) actualRow() Row {
	_, from, _ := e.past.trace.Window()
	var waits []int64
	scored, sum, zero := 0, int64(0), 0
	for i, j := range e.past.trace.Jobs {
		if j.Submit <= from {
			continue
		}
		scored++
		wait := e.past.waited[i]
		if wait == unknown {
			continue
		}
		waits = append(waits, wait)
		sum += wait
		if wait <= prompt {
			zero++
		}
	}
	r := Row{Policy: Happened, Label: "what happened", Jobs: len(waits)}
	if len(waits) == 0 {
		return r
	}
	if len(waits) < scored {
		r.Label = fmt.Sprintf("what happened (%d jobs)", len(waits))
	}
	slices.Sort(waits)
	n := len(waits)
	r.ZeroWait, r.Mean = roundedOrNil(100*float64(zero)/float64(n)), roundedOrNil(float64(sum)/float64(n))
	r.P95, r.WaitHours = roundedOrNil(float64(waits[(95*n+99)/100-1])), roundedOrNil(float64(sum)/3600)
	return r
}
