package booking

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// longestRuntime is the longest runtime of a job with such a grace in a pool.
func longestRuntime(p *txn.PoolTx, grace time.Duration) time.Duration {
	return (p.Pool.Timers.MaxLease - grace - jobMargin).Truncate(time.Second)
}

// CheckLimits refuses a runtime that the pool never gives a job, or a signal that would have to come before it begins.
func CheckLimits(p *txn.PoolTx, j job.Job) error {
	return errors.Join(checkRuntime([]*txn.PoolTx{p}, j), checkCheckpoint(j))
}

// fitsLimits reports whether a lease of the pool holds a job.
func fitsLimits(p *txn.PoolTx, j job.Job) bool { return j.MaxRuntime <= longestRuntime(p, j.Grace) }

// checkRuntime refuses a runtime that no lease of the pools holds, and says which one would be held.
func checkRuntime(pools []*txn.PoolTx, j job.Job) error {
	var longest, lease time.Duration
	for _, p := range pools {
		if fits := longestRuntime(p, j.Grace); fits > longest {
			longest, lease = fits, p.Pool.Timers.MaxLease
		}
	}
	if longest < time.Second || j.MaxRuntime <= longest {
		return nil // where no runtime fits, admission says why
	}
	return &ledger.InvalidError{Field: "max_runtime_seconds", Rule: fmt.Sprintf("must be at most %s (%d s): the longest "+
		"lease is %s, and of it %s are kept for its grace, and %s to begin and to end", phrase.Length(longest),
		int64(longest/time.Second), phrase.Length(lease), phrase.Length(j.Grace), phrase.Length(jobMargin)),
		Fix: "give it less time, or a shorter grace"}
}

// checkCheckpoint refuses a signal that would have to come before the job begins.
func checkCheckpoint(j job.Job) error {
	if j.Checkpoint.Signal == "" || j.Checkpoint.Before < j.MaxRuntime {
		return nil
	}
	return &ledger.InvalidError{Field: "checkpoint.before_seconds", Rule: "must be less than the runtime, which is " +
		phrase.Length(j.MaxRuntime) + " (without a time it is 60s)",
		Fix: "have the signal sent later, or give the job more time"}
}
