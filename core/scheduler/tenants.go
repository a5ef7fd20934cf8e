package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
)

// account is what somebody holds, and has had lately.
type account struct {
	held  int
	usage fairshare.Usage
	over  float64 // how many times its fair share
}

// tenant is the account of a tenant.
type tenant struct {
	Tenant
	account
	name     string
	promised int // to those of its jobs that wait
	users    int // who have jobs
}

// user is the account of one of a tenant's users.
type user struct {
	account
	tenant *tenant
	jobs   int // that wait, or hold GPUs
}

func (s *Scheduler) tenantOf(name string) *tenant {
	t := s.tenants[name]
	if t == nil {
		t = &tenant{Tenant: s.policy.Tenants[name], name: name}
		t.Weight = max(t.Weight, 1)
		s.tenants[name] = t
		s.weights += t.Weight
	}
	return t
}

func (s *Scheduler) userOf(key userKey) *user {
	u := s.users[key]
	if u == nil {
		u = &user{tenant: s.tenantOf(key.tenant)}
		s.users[key] = u
	}
	return u
}

// addJobs counts the user's jobs. Among those who have some, the tenant's share is parted.
func (u *user) addJobs(more int) {
	before := u.jobs > 0
	u.jobs += more
	switch now := u.jobs > 0; {
	case now && !before:
		u.tenant.users++
	case before && !now:
		u.tenant.users--
	}
}

// used is the usage as of now, with what is held.
func (s *Scheduler) used(a *account, now time.Time) fairshare.Usage {
	if a.usage.At.IsZero() {
		a.usage.At = now
	}
	return s.policy.FairShare.ChargeUse(a.usage, now, gpuVector(a.held), now.Sub(a.usage.At))
}

// hold changes what the user holds by a job that takes or leaves its GPUs. Usage is settled only here, so that it does
// not depend on how often somebody looks.
func (s *Scheduler) hold(u *user, gpus int, now time.Time) {
	for _, a := range []*account{&u.tenant.account, &u.account} {
		a.usage = s.used(a, now)
		a.held += gpus
		if gpus > 0 {
			a.usage = s.policy.FairShare.ChargeEntry(a.usage, now, gpuVector(gpus))
		}
	}
	s.weigh(u.tenant, now)
	s.weighUser(u, now)
}

// weighAll computes how what each has had counts against it.
func (s *Scheduler) weighAll(now time.Time) {
	for _, t := range s.tenants {
		s.weigh(t, now)
	}
	for _, u := range s.users {
		s.weighUser(u, now)
	}
}

func (s *Scheduler) weigh(t *tenant, now time.Time) {
	t.over = s.shareOf(&t.account, t.Weight, now) * float64(s.weights)
}

// weighUser compares a user's share with an equal part of its tenant's. Of one who has no jobs nobody asks.
func (s *Scheduler) weighUser(u *user, now time.Time) {
	if u.jobs > 0 {
		u.over = s.shareOf(&u.account, u.tenant.Weight, now) * float64(s.weights*u.tenant.users)
	}
}

func (s *Scheduler) shareOf(a *account, weight int, now time.Time) float64 {
	return s.policy.FairShare.Share(s.used(a, now), gpuVector(s.gpus), weight)
}

// overShare is how many times its fair share the user has had, or its tenant, if that is more: nobody stands better by
// being many.
func (u *user) overShare() float64 { return max(u.tenant.over, u.over) }

// use is what divides in Balanced.
func (s *Scheduler) use(u *user) float64 { return 1 + float64(s.policy.ShareWeight*u.overShare()) }

// fairShare is what is added in Multifactor.
func (u *user) fairShare() int64 { return int64(math.Exp2(-u.overShare()) * ratioScale) }

func gpuVector(n int) quota.Vector { return quota.Vector{quota.GPUs: int64(n)} }
