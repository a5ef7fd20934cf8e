package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/problem"
)

func (a *API) quota() {
	handle(a, operation{http.MethodGet, "/organizations/{id}/quota", "getQuota", "identity", "Read a tenant's limits",
		0}, a.getQuota)
	handle(a, operation{http.MethodPut, "/organizations/{id}/quota", "setQuota", "identity",
		"Replace a tenant's limits at once", 0}, a.setQuota)
	handle(a, operation{http.MethodGet, "/organizations/{id}/usage", "getUsage", "identity",
		"What a tenant holds, is promised and has used", 0}, a.getUsage)
	handle(a, operation{http.MethodPut, "/users/{id}/caps", "setUserCaps", "identity",
		"Cap what a person's keys may book", 0}, a.setUserCaps)
}

func (a *API) getQuota(ctx context.Context, in *struct{ ByID }) (*One[contract.Quota], error) {
	var o ledger.Organization
	err := a.read(ctx, func(r ledger.Reader) (err error) {
		o, err = ledger.LiveOrganization(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.Quota]{ETag: etag(o.Version), Body: encodeQuota(o)}, err
}

func (a *API) setQuota(ctx context.Context, in *struct {
	ByID
	Match
	Force bool `query:"force" doc:"Change it although promises are beyond the new limits, and mark those degraded."`
	Body  contract.Limits
},
) (*One[contract.QuotaChanged], error) {
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	got, err := a.Ledger.SetLimits(ctx, auth.From(ctx), in.ID, version, decodeLimits(in.Body), in.Force)
	if err != nil {
		return nil, err
	}
	return &One[contract.QuotaChanged]{ETag: etag(got.Organization.Version), Body: quotaChanged(got)}, nil
}

func quotaChanged(c ledger.LimitsChange) contract.QuotaChanged {
	return contract.QuotaChanged{Quota: encodeQuota(c.Organization), Degraded: problem.AtRisk(c.Degraded),
		Restored: c.Restored}
}

func (a *API) getUsage(ctx context.Context, in *struct {
	ByID
	Hours int `query:"hours" minimum:"1" maximum:"8784" default:"168" doc:"How far ahead the peak is looked for."`
},
) (*One[contract.QuotaUsage], error) {
	got, err := a.Ledger.Usage(ctx, auth.From(ctx), in.ID, time.Duration(in.Hours)*time.Hour)
	if err != nil {
		return nil, err
	}
	return &One[contract.QuotaUsage]{Body: encodeUsage(got)}, nil
}

func (a *API) setUserCaps(ctx context.Context, in *struct {
	ByID
	Match
	Body contract.UserCaps
},
) (*One[contract.User], error) {
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	u, err := a.Ledger.SetUserCaps(ctx, auth.From(ctx), in.ID, version, decodeCaps(in.Body.Caps))
	if err != nil {
		return nil, err
	}
	a.Auth.ForgetPerson(u.ID)
	return &One[contract.User]{ETag: etag(u.Version), Body: user(u)}, nil
}

func encodeQuota(o ledger.Organization) contract.Quota {
	return contract.Quota{OrganizationID: o.ID, Limits: encodeLimits(o.Limits), Version: o.Version}
}

func decodeLimits(l contract.Limits) quota.Limits {
	out := quota.Limits{
		GPUs: l.MaxGPUs, SpeculationPerDay: parseMoney(l.SpeculationPerDay),
		GPUMemoryMiB: limit(l.MaxGPUMemoryMiB), CPUs: limit(l.MaxCPUs), MemoryMiB: limit(l.MaxMemoryMiB),
		Bookings: limit(l.MaxJobs),
		Cohort:   l.Cohort, Borrowing: decodeBounds(l.Borrowing), Lending: decodeBounds(l.Lending),
		Period: quota.Period(l.Period), GPUHours: limit(l.GPUHours), Weight: l.Weight,
	}
	if l.Money != nil {
		out.MoneyPerPeriod = quota.AtMost(int64(parseMoney(*l.Money)))
	}
	return out
}

func encodeLimits(l quota.Limits) contract.Limits {
	return contract.Limits{
		MaxGPUs: l.GPUs, SpeculationPerDay: formatMoney(l.SpeculationPerDay),
		MaxGPUMemoryMiB: bound(l.GPUMemoryMiB), MaxCPUs: bound(l.CPUs), MaxMemoryMiB: bound(l.MemoryMiB),
		MaxJobs: bound(l.Bookings),
		Cohort:  l.Cohort, Borrowing: encodeBounds(l.Borrowing), Lending: encodeBounds(l.Lending),
		Period: string(l.Period), GPUHours: bound(l.GPUHours), Money: optionalMoney(l.MoneyPerPeriod), Weight: l.Weight,
	}
}

// limit is the limit that a number states; none is no limit.
func limit(n *int64) quota.Limit {
	if n == nil {
		return quota.Limit{}
	}
	return quota.AtMost(*n)
}

func bound(l quota.Limit) *int64 {
	if n, ok := l.Bound(); ok {
		return &n
	}
	return nil
}

func optionalMoney(l quota.Limit) *contract.Money {
	n, ok := l.Bound()
	if !ok {
		return nil
	}
	m := formatMoney(money.MicroUSD(n))
	return &m
}

func decodeBounds(b contract.Bounds) quota.Bounds {
	return quota.Bounds{quota.GPUs: limit(b.GPUs), quota.GPUMemoryMiB: limit(b.GPUMemoryMiB), quota.CPUs: limit(b.CPUs),
		quota.MemoryMiB: limit(b.MemoryMiB), quota.Jobs: limit(b.Jobs)}
}

func encodeBounds(b quota.Bounds) contract.Bounds {
	return contract.Bounds{GPUs: bound(b[quota.GPUs]), GPUMemoryMiB: bound(b[quota.GPUMemoryMiB]),
		CPUs:      bound(b[quota.CPUs]),
		MemoryMiB: bound(b[quota.MemoryMiB]), Jobs: bound(b[quota.Jobs])}
}

func encodeUsage(u ledger.Usage) contract.QuotaUsage {
	l := u.Organization.Limits
	out := contract.QuotaUsage{OrganizationID: u.Organization.ID, At: u.At.UTC(), Until: u.Until.UTC(),
		Speculation: formatMoney(u.Guessed.Cost), SpeculationLimit: formatMoney(l.SpeculationPerDay),
		Period: contract.PeriodUsage{Period: string(l.Period), Start: l.Period.Start(u.At), End: l.Period.Next(u.At),
			GPUHours: float64(u.Period.GPUSeconds) / 3600, GPUHoursLimit: bound(l.GPUHours),
			Money: formatMoney(u.Period.Cost), MoneyLimit: optionalMoney(l.MoneyPerPeriod)},
	}
	nominal := l.Nominal()
	for r := range u.Now {
		out.Resources = append(out.Resources, contract.ResourceUsage{Resource: quota.Resource(r).String(),
			Now: u.Now[r], Peak: u.Peak[r],
			Limit: bound(nominal[r]), Ceiling: ceiling(l, quota.Resource(r))})
	}
	return out
}

// ceiling is how far an organization may go with what it borrows; nil: there is
// no limit.
func ceiling(l quota.Limits, r quota.Resource) *int64 {
	own, limited := l.Nominal()[r].Bound()
	switch borrowed, capped := l.Borrowing[r].Bound(); {
	case !limited || l.Cohort != "" && !capped:
		return nil
	case l.Cohort != "":
		own += borrowed
	}
	return &own
}

func decodeCaps(c *contract.Caps) quota.Caps {
	if c == nil {
		return quota.Caps{}
	}
	return quota.Caps{MaxGPUs: c.MaxGPUs, MaxPerDay: parseMoney(c.MaxPerDay), MaxLead: seconds(c.MaxLeadSeconds),
		MaxWindow:      seconds(c.MaxWindowSeconds),
		GPUHoursPerDay: limit(c.GPUHoursPerDay)}
}

// caps encodes caps that hold; nil when there are none.
func caps(c quota.Caps) *contract.Caps {
	if c == (quota.Caps{}) {
		return nil
	}
	return &contract.Caps{MaxGPUs: c.MaxGPUs, MaxPerDay: formatMoney(c.MaxPerDay),
		MaxLeadSeconds:   int64(c.MaxLead / time.Second),
		MaxWindowSeconds: int64(c.MaxWindow / time.Second), GPUHoursPerDay: bound(c.GPUHoursPerDay)}
}

// capsUse is what is used of caps; nil when there are none.
func capsUse(c quota.Caps, used *quota.Commitments, now time.Time) *contract.CapsUse {
	if c == (quota.Caps{}) {
		return nil
	}
	if used == nil {
		used = &quota.Commitments{}
	}
	today := used.On(now)
	ahead := calendar.Interval{Start: now, End: now.Add(c.MaxLead + c.MaxWindow)}
	return &contract.CapsUse{GPUs: int(used.At(now)[quota.GPUs]), Peak: int(used.Peak(ahead)[quota.GPUs]),
		Spent:    formatMoney(today.Cost),
		GPUHours: float64(today.GPUSeconds) / 3600}
}
