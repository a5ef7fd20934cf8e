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

// accounts are those of all tenants and their users.
type accounts struct {
	policy  Policy
	gpus    int // that there are
	tenants map[string]*tenant
	users   map[userKey]*user
	weights int // of all tenants
}

func newAccounts(p Policy) *accounts {
	return &accounts{policy: p, tenants: map[string]*tenant{}, users: map[userKey]*user{}}
}

// tenant is the account of a tenant.
type tenant struct {
	Tenant
	account
	promised int // to those of its jobs that wait
	users    int // who have jobs
}

// user is the account of one of a tenant's users.
type user struct {
	account
	tenant *tenant
	jobs   int // that wait, or hold GPUs
}

func (all *accounts) tenantOf(name string) *tenant {
	t := all.tenants[name]
	if t == nil {
		t = &tenant{Tenant: all.policy.Tenants[name]}
		t.Weight = max(t.Weight, 1)
		all.tenants[name] = t
		all.weights += t.Weight
	}
	return t
}

func (all *accounts) userOf(key userKey) *user {
	u := all.users[key]
	if u == nil {
		u = &user{tenant: all.tenantOf(key.tenant)}
		all.users[key] = u
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
func (all *accounts) used(a *account, now time.Time) fairshare.Usage {
	if a.usage.At.IsZero() {
		a.usage.At = now
	}
	return all.policy.FairShare.ChargeUse(a.usage, now, gpuVector(a.held), now.Sub(a.usage.At))
}

// hold changes what the user holds by a job that takes or leaves its GPUs. Usage is settled only here, so that it does
// not depend on how often somebody looks.
func (all *accounts) hold(u *user, gpus int, now time.Time) {
	for _, a := range []*account{&u.tenant.account, &u.account} {
		a.usage = all.used(a, now)
		a.held += gpus
		if gpus > 0 {
			a.usage = all.policy.FairShare.ChargeEntry(a.usage, now, gpuVector(gpus))
		}
	}
	all.weighTenant(u.tenant, now)
	all.weighUser(u, now)
}

// weigh computes how what each has had counts against it.
func (all *accounts) weigh(now time.Time) {
	for _, t := range all.tenants {
		all.weighTenant(t, now)
	}
	for _, u := range all.users {
		all.weighUser(u, now)
	}
}

func (all *accounts) weighTenant(t *tenant, now time.Time) {
	t.over = all.shareOf(&t.account, t.Weight, now) * float64(all.weights)
}

// weighUser compares a user's share with an equal part of its tenant's. Of one who has no jobs nobody asks.
func (all *accounts) weighUser(u *user, now time.Time) {
	if u.jobs > 0 {
		u.over = all.shareOf(&u.account, u.tenant.Weight, now) * float64(all.weights*u.tenant.users)
	}
}

func (all *accounts) shareOf(a *account, weight int, now time.Time) float64 {
	return all.policy.FairShare.Share(all.used(a, now), gpuVector(all.gpus), weight)
}

// overShare is how many times its fair share the user has had, or its tenant, if that is more: nobody stands better by
// being many.
func (u *user) overShare() float64 { return max(u.tenant.over, u.over) }

// use is what divides in Balanced.
func (all *accounts) use(u *user) float64 { return 1 + float64(all.policy.ShareWeight*u.overShare()) }

// fairShare is what is added in Multifactor.
func (u *user) fairShare() int64 { return int64(math.Exp2(-u.overShare()) * ratioScale) }

func gpuVector(n int) quota.Vector { return quota.Vector{quota.GPUs: int64(n)} }
