package outlook

import (
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// MissingWorker is what it means that no worker is there; nil: one is. made is when what waits for one began to be
// there, which is said if no worker ever was.
func (w *Waits) MissingWorker(operator bool, made time.Time) (*ledger.Blocker, error) {
	since, gone, err := w.WorkersGone()
	if err != nil || !gone {
		return nil, err
	}
	if since.IsZero() {
		since = made
	}
	b := ledger.Blocker{Code: ledger.CodeNoWorker, Message: ledger.NoWorkerSince(since, w.r.Now()) +
		": nothing is started, made ready, cleaned or removed before one is there"}
	if !operator {
		b.Message += "; ask an operator"
		return &b, nil
	}
	b.Fix = "forewarm worker"
	all, err := w.r.Workers()
	if err == nil && len(all) > 0 {
		b.Evidence = append(b.Evidence, "the last one ran on "+all[0].Host)
	}
	return &b, err
}
