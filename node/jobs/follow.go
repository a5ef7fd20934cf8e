package jobs

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

const (
	firstRetry = time.Second // full jitter up to this after the first failure, then twice as much
	lastRetry  = 30 * time.Second
)

// runAttempt has a runner run an attempt. What it locks it is given locked, so that there is no moment in which it
// looks like one that is gone.
func (k *Keeper) runAttempt(a *attempt) (*turn, error) {
	var files [filesOfAttempt]*os.File
	var err error
	if files[lifeOf], err = takeLock(a.folder.file(lockFile)); err != nil {
		return nil, err
	}
	defer func() { _ = files[lifeOf].Close() }()
	if files[beginOf], err = takeLock(a.folder.file(beginLock)); err != nil {
		return nil, err
	}
	defer func() { _ = files[beginOf].Close() }()
	files[logOf], err = os.OpenFile(a.folder.file(logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = files[logOf].Close() }()
	return k.runners.run(a, files[:])
}

// follow sends the output of an attempt, and notes its end, until it is forgotten.
func (k *Keeper) follow(a *attempt) {
	out := &reader{folder: a.folder}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // jitter needs no secrecy
	failures, pause := 0, time.Duration(0)
	for {
		ended := k.look(a)
		if k.forget(a) {
			return
		}
		if pause <= 0 && !k.isSent(a) {
			if err := k.send(a, out, ended); err == nil {
				if failures = 0; ended {
					k.finish(a, out)
				}
			} else {
				k.warnOnce(a, failures, err)
				pause = httpx.Backoff(failures, firstRetry, lastRetry, random)
				failures++
			}
		}
		wait := k.LookEvery
		if ended {
			wait = max(wait, pause)
		}
		switch k.rest(a, wait, ended && k.isSent(a)) {
		case closed:
			return
		case woken: // the server can be reached
			pause = 0
		case due:
			pause -= wait
		}
	}
}

// warnOnce says once an outage that output cannot be sent.
func (k *Keeper) warnOnce(a *attempt, failures int, err error) {
	if failures == 0 && k.ctx.Err() == nil {
		k.Log.Warn("the output of a job cannot be sent yet", "job", a.key.JobID, "attempt", a.key.Attempt, "error", err)
	}
}

// wakeUp is why a rest is over.
type wakeUp int

const (
	closed wakeUp = iota // the keeper is
	woken
	due
)

// rest waits until an attempt is to be looked at again; for good unless somebody wakes it.
func (k *Keeper) rest(a *attempt, wait time.Duration, forGood bool) wakeUp {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if forGood {
		timer.Stop()
	}
	select {
	case <-k.ctx.Done():
		return closed
	case <-a.wake:
		return woken
	case <-timer.C:
		return due
	}
}

func (k *Keeper) isSent(a *attempt) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return a.sent
}

// look reports whether an attempt has ended, and notes how.
func (k *Keeper) look(a *attempt) (ended bool) {
	k.mu.Lock()
	known, begun := a.result, a.started
	k.mu.Unlock()
	if known != nil {
		return true
	}
	runs := isHeld(a.folder.file(lockFile)) // before the result is read, which is written before
	if begun == nil {
		begun = a.folder.readStarted()
	}
	k.mu.Lock()
	a.started, a.ran = begun, a.ran || runs
	k.mu.Unlock()
	if runs {
		return false
	}
	r, written := a.findResult(begun)
	if k.isLostToLease(a, r) {
		written = false
		r = result{Code: contract.JobLost, Reason: whyLost, RanSeconds: r.RanSeconds, PeakMemory: r.PeakMemory}
	}
	if written {
		k.setResult(a, r)
	} else {
		k.keepResult(a, r)
	}
	k.Log.Info("a job ended", "job", a.key.JobID, "attempt", a.key.Attempt, "code", a.result.Code,
		"exit_code", a.result.ExitCode, "reason", a.result.Reason)
	return true
}

// findResult returns how an attempt ended that has no runner any more, and whether that is written down.
func (a *attempt) findResult(begun *started) (r result, written bool) {
	r, found, err := a.folder.readResult()
	switch {
	case found:
		return r, true
	case begun != nil || err != nil || a.before:
		reason := cmp.Or(a.folder.lastWords(), "what watched it on its node has ended before it, or with the machine")
		return result{Code: contract.JobLost, Reason: clip(reason), RanSeconds: begun.age()}, false
	default:
		reason := cmp.Or(a.folder.lastWords(), "the daemon of its node ended before it was started")
		return result{Code: contract.JobNotStarted, Reason: clip(reason)}, false
	}
}

// send sends what there is of the output of an attempt. While that runs, what comes meanwhile waits, so
// that much is sent at once.
func (k *Keeper) send(a *attempt, out *reader, ended bool) error {
	next := time.NewTicker(k.SendEvery)
	defer next.Stop()
	for isFirst := true; ; isFirst = false {
		pieces, err := out.read()
		if err != nil || len(pieces) == 0 {
			return err
		}
		if !isFirst {
			select {
			case <-k.ctx.Done():
				return k.ctx.Err()
			case <-next.C:
			}
		}
		from := out.next
		got, err := k.Store(k.ctx, a.key.JobID, contract.JobOutputPart{Attempt: a.key.Attempt, Rank: a.rank, Offset: from,
			Pieces: pieces})
		if err != nil {
			return err
		}
		if out.accept(got.NextOffset); out.next <= from { // it wants what is not there any more, or nothing
			return errNotStored
		}
		if !out.more && !ended {
			return nil
		}
	}
}

var errNotStored = errors.New("the server has stored nothing of it")

// finish notes that all output of an attempt that has ended is sent.
func (k *Keeper) finish(a *attempt, out *reader) {
	if err := out.removeAll(); err != nil {
		k.Log.Warn("the output of a job, which is sent, cannot be removed", "job", a.key.JobID, "error", err)
	}
	k.mu.Lock()
	a.sent = true
	k.mu.Unlock()
	if k.endHold(a) {
		k.Hurry()
	}
}

// endWithin is how long the report of an attempt waits for the end of its hold, so that one tells both.
const endWithin = 100 * time.Millisecond

// endHold ends the hold of an attempt that has ended, if that is its alone, and reports whether nobody else has its
// end reported: whoever ends a hold has that done when nothing is left of it.
func (k *Keeper) endHold(a *attempt) bool {
	if a.hold == "" || k.Holds == nil {
		return true
	}
	timer := time.NewTimer(endWithin)
	defer timer.Stop()
	select {
	case <-k.Holds.EndNow(a.hold):
		return false
	case <-timer.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// forget removes what there is of an attempt that has ended, if nobody needs it.
func (k *Keeper) forget(a *attempt) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !a.forgotten || a.result == nil {
		return false
	}
	if err := k.spares.remove(a.folder); err != nil {
		k.Log.Error("what is left of a job cannot be removed", "job", a.key.JobID, "attempt", a.key.Attempt, "error", err)
		return false // the server names it again
	}
	delete(k.attempts, a.key)
	return true
}
