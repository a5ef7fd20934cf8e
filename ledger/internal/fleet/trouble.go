package fleet

import (
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// troublesome are the kinds of task whose failures are their provider's.
var troublesome = []string{ledger.TaskCreateNode, ledger.TaskCheckNode, ledger.TaskSweep,
	ledger.TaskObserve, ledger.TaskKeep}

// ReadTroubles reads what fails again and again.
func ReadTroubles(r ledger.Reader) (ledger.Troubles, error) {
	failing, err := r.Failing(ledger.TroubleAfter)
	if err != nil {
		return nil, err
	}
	var all ledger.Troubles
	for _, t := range failing {
		if slices.Contains(troublesome, t.Kind) {
			all = append(all, ledger.Trouble{Kind: t.Kind, Subject: t.Subject, Count: t.Failures, At: t.FailedAt,
				Message: ledger.ClipText(t.LastError, 300)})
		}
	}
	boots, err := readBootTroubles(r)
	return append(all, boots...), err
}
