package ledger

import "time"

// Worker is a worker of the installation, as it noted last that it was there. Times are
// the database's.
type Worker struct {
	ID    string // stays the same when the worker is started again
	Host  string // where it runs, for people
	Seen  time.Time
	Until time.Time // when it is taken for gone unless it is noted again
}

// CodeNoWorker is the blocker of everything that needs a worker while none is there.
const CodeNoWorker = "no_worker"

// WorkersGone reports whether no worker is there now, and since when: zero, if none ever
// was.
func WorkersGone(r Reader) (since time.Time, gone bool, err error) {
	all, err := r.Workers()
	if err != nil {
		return time.Time{}, false, err
	}
	for _, w := range all {
		if w.Until.After(r.Now()) {
			return time.Time{}, false, nil
		}
	}
	if len(all) > 0 {
		since = all[0].Seen
	}
	return since, true, nil
}

// NoWorkerSince says that none is there, and since when.
func NoWorkerSince(since, now time.Time) string {
	return "no worker has been seen since " + FormatTimeSeen(since, now)
}
