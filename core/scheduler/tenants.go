package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
)

// tenant is what somebody holds, and has had lately.
type tenant struct {
	Tenant
	name     string
	held     int
	promised int // to those of its jobs that wait
	usage    fairshare.Usage
	// What it has had counts against it: in Balanced it divides, in Multifactor it
	// is added.
	use       float64
	fairShare int64
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

// used is the tenant's usage as of now, with what it holds.
func (s *Scheduler) used(t *tenant, now time.Time) fairshare.Usage {
	if t.usage.At.IsZero() {
		t.usage.At = now
	}
	return s.policy.FairShare.ChargeUse(t.usage, now, gpuVector(t.held), now.Sub(t.usage.At))
}

// hold changes what the tenant holds. Usage is settled only here, so that it does not
// depend on how often somebody looks.
func (s *Scheduler) hold(t *tenant, gpus int, now time.Time) {
	t.usage = s.used(t, now)
	t.held += gpus
	if gpus > 0 {
		t.usage = s.policy.FairShare.ChargeEntry(t.usage, now, gpuVector(gpus))
	}
	s.weigh(t, now)
}

// weigh computes how what the tenant has had counts against it.
func (s *Scheduler) weigh(t *tenant, now time.Time) {
	share := s.policy.FairShare.Share(s.used(t, now), gpuVector(s.gpus), t.Weight)
	over := share * float64(s.weights) // how many times its fair share
	t.use = 1 + float64(s.policy.ShareWeight*over)
	t.fairShare = int64(math.Exp2(-over) * ratioScale)
}

func gpuVector(n int) quota.Vector { return quota.Vector{quota.GPUs: int64(n)} }
