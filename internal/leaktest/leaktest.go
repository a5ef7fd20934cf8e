// Package leaktest finds the goroutines that tests leave behind, on a slow machine as on a fast one.
package leaktest

import (
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end that were told to: goleak itself waits for less than half a second.
const patience = time.Minute

// VerifyTestMain runs the tests of a package and ends the process, as goleak.VerifyTestMain does. That goroutines have
// not ended is said once they have had a minute.
func VerifyTestMain(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, options}, options...)
}

// patient runs tests, and waits for the goroutines that are about to end.
type patient struct {
	goleak.TestingM
	options []goleak.Option
}

// Run implements goleak.TestingM.
func (p patient) Run() int {
	code := p.TestingM.Run()
	over := time.After(patience)
	for code == 0 && goleak.Find(p.options...) != nil {
		select {
		case <-over:
			return code
		default: // Find has waited a while
		}
	}
	return code
}
