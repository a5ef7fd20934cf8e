package jobs

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/plaintext"
)

// attempt is one of a job.
type attempt struct {
	key    contract.JobKey
	rank   int
	place  string // the allocation in which it runs; empty: nobody knows
	hold   string // the same, if that is this attempt's alone; empty: it is not, or nobody knows
	folder folder
	before bool          // it was accepted before the machine booted: it may have started, whatever its folder says
	wake   chan struct{} // has its follower look

	// What follows is guarded by the keeper.
	started   *started
	result    *result // nil: it may still run
	sent      bool    // its output, all of it
	tried     time.Duration
	forgotten bool
	told      bool // to end
	ran       bool // under the eyes of this keeper
	lapsed    bool // the node has ended its hold by itself
}

func (k *Keeper) newAttempt(key contract.JobKey) *attempt {
	return &attempt{key: key, folder: folder(filepath.Join(k.Dir, nameOf(key))), wake: make(chan struct{}, 1)}
}

// accept notes what is known of the attempt from when it was ordered.
func (a *attempt) accept(what accepted) {
	a.rank, a.before = what.Order.Rank, what.BootID != "" && what.BootID != bootID()
	a.place = what.Order.AllocationID
	if what.Order.EndsHold {
		a.hold = a.place
	}
}

func (a *attempt) ring() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// isOver reports whether it may be told that it has ended.
func (a *attempt) isOver() bool { return a.result != nil && (a.sent || a.tried >= giveUp) }

// Reports is what is known of the attempts here.
func (k *Keeper) Reports() []contract.JobReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLapses()
	all := make([]contract.JobReport, 0, len(k.attempts))
	for _, a := range k.attempts {
		all = append(all, a.report())
	}
	slices.SortFunc(all, func(a, b contract.JobReport) int {
		return cmp.Or(strings.Compare(a.State, b.State), // those that have ended are soon fewer
			strings.Compare(a.JobID, b.JobID), a.Attempt-b.Attempt)
	})
	return all[:min(len(all), mostReports)]
}

// Gone returns those of some attempts that are not here, or not any more.
func (k *Keeper) Gone(keys []contract.JobKey) (all []contract.JobKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if k.attempts[key] == nil {
			all = append(all, key)
		}
	}
	return all
}

// toldLate is from how many seconds after its end on an attempt's report says when it ended. What is told at once says
// nothing of that, so that servers of earlier versions, which refuse the field, take nearly all ends while they are
// replaced.
const toldLate = 1

func (a *attempt) report() contract.JobReport {
	r := contract.JobReport{JobKey: a.key, Rank: a.rank, State: contract.JobRankRunning, RanSeconds: a.started.age()}
	if a.result != nil {
		r.RanSeconds = a.result.RanSeconds
	}
	if a.isOver() {
		r.State, r.ExitCode, r.Signal = contract.JobRankEnded, a.result.ExitCode, a.result.Signal
		r.PeakMemoryBytes = a.result.PeakMemory
		if ago := a.started.age() - a.result.RanSeconds; ago >= toldLate {
			r.EndedSecondsAgo = ago
		}
		r.Code, r.Reason = a.result.Code, clip(plaintext.Escape(a.result.Reason)) // holders choose what it quotes
	}
	return r
}
