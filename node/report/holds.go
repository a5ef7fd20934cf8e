package report

import (
	"errors"
	"slices"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
)

// Holds are what runs here for holders of allocations.
type Holds interface {
	// Isolation says how well the node keeps them apart.
	Isolation() string
	// Unbounded says why the memory and the processors of what runs here are not bounded; empty: they are.
	Unbounded() string
	// Runtime is what runs containers here; the zero value: nothing does.
	Runtime() container.Runtime
	// List returns the allocations that have a place here.
	List() []string
	// GPUs are those that they have, or had until they ended.
	GPUs() []string
	// Over returns those of some allocations whose holds were ended here and are forgotten.
	Over(ids []string) []string
	// Cleaned is what there is to tell of those that have ended.
	Cleaned() []contract.Cleaned
	// End ends those that the server names, and forgets what it names no more.
	End(ids []string)
	// HearLeases takes what the server said, at a time or soon after it, of the leases of listed holds.
	HearLeases(listed []string, said []contract.Lease, at time.Time)
	// LeaseEnds returns when the first of the leases ends that are known; zero: none is.
	LeaseEnds() time.Time
	// EndLapsed ends the holds whose leases are over for so long that the server, which has been asked in vain since a
	// time, is not waited for any more.
	EndLapsed(now, unheard time.Time)
	// Look reads from a look, begun at a time, whether the GPUs of what has ended are free.
	Look(look contract.NodeLook, at time.Time)
	// AwaitsLook reports whether an end waits for a look.
	AwaitsLook() bool
	// EndAll ends all, and returns when nothing runs any more.
	EndAll()
}

// endHolds ends what runs here once nobody stands for it any more. Where a later daemon of this machine does, it goes
// on.
func (r *Reporter) endHolds(refusal error) {
	if r.Holds != nil && !isSuperseded(refusal) {
		r.Holds.EndAll()
	}
}

// held are the GPUs that somebody has here, or has just left.
func (r *Reporter) held() []string {
	if r.Holds == nil {
		return nil
	}
	return r.Holds.GPUs()
}

// askLeasesEvery is how often the server is asked once a lease is over, until it says that the hold has ended, or for
// how much longer it goes on.
const askLeasesEvery = 5 * time.Second

// longestPause is between two questions of a daemon that goes on asking, also where a look at a driver that hangs and a
// server that does not answer come in between. After a longer one it was frozen meanwhile, and nobody has asked.
const longestPause = time.Minute

// askForLeases has this step report where a lease is over by what is known of it, also where the next try would be
// later: the server may have extended it.
func (r *Reporter) askForLeases(now time.Time) {
	if r.Holds == nil {
		return
	}
	ends := r.Holds.LeaseEnds()
	if ends.IsZero() || now.Before(ends) || now.Before(r.leasesAt.Add(askLeasesEvery)) {
		return
	}
	if now.Sub(r.leasesAt) >= longestPause {
		r.unheardAt = time.Time{}
	}
	r.leasesAt, r.lookAt, r.sendAt, r.urgent = now, now, now, true
}

// noteUnheard notes since when the server has been asked in vain how long leases go on.
func (r *Reporter) noteUnheard(now time.Time) {
	if r.unheardAt.IsZero() && r.leasesAt.Equal(now) {
		r.unheardAt = now
	}
}

// endLapsed ends what is over where the server, which was asked, did not answer.
func (r *Reporter) endLapsed(now time.Time) {
	if r.Holds != nil && !r.unheardAt.IsZero() {
		r.Holds.EndLapsed(now, r.unheardAt)
	}
}

// beforeLeaseEnds returns a time, or when a lease has the server be asked, if that is earlier.
func (r *Reporter) beforeLeaseEnds(next, now time.Time) time.Time {
	if r.Holds == nil {
		return next
	}
	ends := r.Holds.LeaseEnds()
	if ends.IsZero() {
		return next
	}
	if ask := r.leasesAt.Add(askLeasesEvery); !ends.After(now) && ask.After(now) {
		ends = ask
	}
	return earlier(next, ends)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// isSuperseded reports whether the server refuses this daemon because another one of the machine began later.
func isSuperseded(refusal error) bool {
	p, ok := errors.AsType[*client.Error](refusal)
	return ok && slices.ContainsFunc(p.Problem.Errors, func(e contract.FieldError) bool {
		return e.Code == contract.ErrorSuperseded
	})
}
