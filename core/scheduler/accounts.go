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
	share float64 // of all that there is, by the weight of the tenant
}

// accounts are those of all tenants and their users.
type accounts struct {
	policy  Policy
	gpus    int     // that there are
	little  float64 // the share that is one of them for the policy's Softening
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
	// Of its users whose jobs waited when a cycle began: how many they were, and what they had had, as a sum of whole
	// numbers, which is the same in whatever order they are added.
	rivals    int
	rivalsHad int64
}

// user is the account of one of a tenant's users.
type user struct {
	account
	tenant  *tenant
	waiting int     // jobs
	others  float64 // what those with whom it is compared had on average, as a cycle began
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
		a.share = all.shareOf(a, u.tenant.Weight, now)
	}
}

// weigh computes what each has had, as a cycle begins. With whom users are compared does not change during a cycle, in
// which nobody's place gets better.
func (all *accounts) weigh(now time.Time) {
	for _, t := range all.tenants {
		t.share = all.shareOf(&t.account, t.Weight, now)
		t.rivals, t.rivalsHad = 0, 0
	}
	for _, u := range all.users {
		u.share = all.shareOf(&u.account, u.tenant.Weight, now)
		if u.waiting > 0 {
			u.tenant.rivals++
			u.tenant.rivalsHad += int64(u.share * shareScale)
		}
	}
	for _, u := range all.users {
		if t := u.tenant; u.waiting > 0 && t.rivals > 1 {
			u.others = float64(t.rivalsHad-int64(u.share*shareScale)) / shareScale / float64(t.rivals-1)
		}
	}
	little := all.policy.FairShare.ChargeUse(fairshare.Usage{}, now, gpuVector(1), all.policy.Softening)
	all.little = all.policy.FairShare.Share(little, gpuVector(all.gpus), 1)
}

// shareScale makes shares whole numbers.
const shareScale = 1e12

func (all *accounts) shareOf(a *account, weight int, now time.Time) float64 {
	return all.policy.FairShare.Share(all.used(a, now), gpuVector(all.gpus), weight)
}

// over is how many times its fair share the tenant has had.
func (all *accounts) over(t *tenant) float64 { return t.share * float64(all.weights) }

// excess is how many times as much the user has had as the others of its tenant whose jobs wait, on average; from 1 to
// the policy's MostExcess, which also bounds what a tenant loses beside others while jobs of those wait who had less,
// but cannot start yet. Both are softened as waits are, so that whoever waits and had nothing goes before who had a GPU
// all that time. Whoever had the least stands as if they were alone: nobody goes before other tenants by having many
// users.
func (all *accounts) excess(u *user) float64 {
	t := u.tenant
	if u.waiting == 0 || t.rivals < 2 || all.little == 0 {
		return 1
	}
	little := all.little / float64(t.Weight)
	return min(max((u.share+little)/(u.others+little), 1), all.policy.MostExcess)
}

// use is what divides in Balanced.
func (all *accounts) use(u *user) float64 {
	return (1 + float64(all.policy.ShareWeight*all.over(u.tenant))) * all.excess(u)
}

// fairShare is what is added in Multifactor.
func (all *accounts) fairShare(u *user) int64 {
	return int64(math.Exp2(-all.over(u.tenant)) / all.excess(u) * ratioScale)
}

// Excess returns what counts against a job that waits, as of the last Cycle or Order: how many times its fair share its
// tenant has had, and its user how many times what the others of the tenant had on average whose jobs wait, from 1 to
// the policy's MostExcess. Both are 0 for a job that does not wait.
func Excess(s *Scheduler, id string) (ofTenant, ofUser float64) {
	w := s.jobs[id]
	if w == nil {
		return 0, 0
	}
	return s.accounts.over(w.line.user.tenant), s.accounts.excess(w.line.user)
}

func gpuVector(n int) quota.Vector { return quota.Vector{quota.GPUs: int64(n)} }
