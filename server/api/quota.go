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
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
	"github.com/forewarm/forewarm/server/problem"
)

func quotaEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "getQuota", Method: http.MethodGet, Path: "/organizations/{id}/quota",
			Tag: "identity", Policy: auth.Viewer, Summary: "Read a tenant's limits"}, getQuota),
		serveChange(a, setQuota, func(in *quotaInput) (contract.PlannedQuota, error) {
			version, err := in.parseIfMatch()
			return contract.PlannedQuota{OrganizationID: in.ID, Version: version, Limits: in.Body, Force: in.Force}, err
		}, func(q contract.QuotaChanged) int { return q.Quota.Version }),
		serve(a, operation.Operation{ID: "getUsage", Method: http.MethodGet, Path: "/organizations/{id}/usage",
			Tag: "identity", Policy: auth.Viewer, Summary: "Show what a tenant holds, has reserved and has used"},
			getUsage),
		serve(a, operation.Operation{ID: "setUserCaps", Method: http.MethodPut, Path: "/users/{id}/caps",
			Tag: "identity", Policy: auth.Admin, Summary: "Cap what a person's keys may book"}, setUserCaps),
	}
}

func getQuota(ctx context.Context, a *API, in *struct{ ByID }) (*One[contract.Quota], error) {
	var o ledger.Organization
	err := a.readSnapshot(ctx, func(r ledger.Reader) (err error) {
		o, err = ledger.LiveOrganization(r, auth.From(ctx).Scope(), in.ID)
		return err
	})
	return &One[contract.Quota]{ETag: formatETag(o.Version), Body: encodeQuota(o)}, err
}

type quotaInput struct {
	ByID
	Match
	Force bool `query:"force" doc:"Change it although promises are beyond the new limits, and mark those degraded."`
	Body  contract.Limits
}

var setQuota = operation.Change[contract.PlannedQuota, ledger.LimitsChange, contract.QuotaChanged]{
	Operation: operation.Operation{ID: "setQuota", Method: http.MethodPut, Path: "/organizations/{id}/quota",
		Tag: "identity", Policy: auth.Operator, Summary: "Replace a tenant's limits at once"},
	Plan: contract.PlanQuota,
	Run: func(ctx context.Context, l *verbs.Ledger, actor ledger.Actor,
		b contract.PlannedQuota) (ledger.LimitsChange, error) {
		return l.SetLimits(ctx, actor, b.OrganizationID, b.Version, decodeLimits(b.Limits), b.Force)
	},
	Encode: forAnybody(encodeQuotaChange),
}

func encodeQuotaChange(c ledger.LimitsChange) contract.QuotaChanged {
	return contract.QuotaChanged{Quota: encodeQuota(c.Organization), Degraded: problem.AtRisk(c.Degraded),
		Restored: c.Restored}
}

func getUsage(ctx context.Context, a *API, in *struct {
	ByID
	Hours int `query:"hours" minimum:"1" maximum:"8784" default:"168" doc:"How far ahead to look for the peak."`
},
) (*One[contract.QuotaUsage], error) {
	got, err := a.Ledger.Usage(ctx, auth.From(ctx), in.ID, time.Duration(in.Hours)*time.Hour)
	if err != nil {
		return nil, err
	}
	return &One[contract.QuotaUsage]{Body: encodeUsage(got)}, nil
}

func setUserCaps(ctx context.Context, a *API, in *struct {
	ByID
	Match
	Body contract.UserCaps
},
) (*One[contract.User], error) {
	version, err := in.parseIfMatch()
	if err != nil {
		return nil, err
	}
	u, err := a.Ledger.SetUserCaps(ctx, auth.From(ctx), in.ID, version, decodeCaps(in.Body.Caps))
	if err != nil {
		return nil, err
	}
	a.Auth.ForgetPerson(u.ID)
	return &One[contract.User]{ETag: formatETag(u.Version), Body: encodeUser(u)}, nil
}

func encodeQuota(o ledger.Organization) contract.Quota {
	return contract.Quota{OrganizationID: o.ID, Limits: encodeLimits(o.Limits), Version: o.Version}
}

func decodeLimits(l contract.Limits) quota.Limits {
	out := quota.Limits{
		GPUs: l.MaxGPUs, SpeculationPerDay: parseMoney(l.SpeculationPerDay),
		GPUMemoryMiB: decodeLimit(l.MaxGPUMemoryMiB), CPUs: decodeLimit(l.MaxCPUs),
		MemoryMiB: decodeLimit(l.MaxMemoryMiB),
		Bookings:  decodeLimit(l.MaxBookings),
		Cohort:    l.Cohort, Borrowing: decodeBounds(l.Borrowing), Lending: decodeBounds(l.Lending),
		Period: quota.Period(l.Period), GPUHours: decodeLimit(l.GPUHours), Weight: l.Weight,
	}
	if l.Money != nil {
		out.MoneyPerPeriod = quota.AtMost(int64(parseMoney(*l.Money)))
	}
	return out
}

func encodeLimits(l quota.Limits) contract.Limits {
	return contract.Limits{
		MaxGPUs: l.GPUs, SpeculationPerDay: formatMoney(l.SpeculationPerDay),
		MaxGPUMemoryMiB: encodeLimit(l.GPUMemoryMiB), MaxCPUs: encodeLimit(l.CPUs),
		MaxMemoryMiB: encodeLimit(l.MemoryMiB),
		MaxBookings:  encodeLimit(l.Bookings),
		Cohort:       l.Cohort, Borrowing: encodeBounds(l.Borrowing), Lending: encodeBounds(l.Lending),
		Period: string(l.Period), GPUHours: encodeLimit(l.GPUHours), Money: optionalMoney(l.MoneyPerPeriod),
		Weight: l.Weight,
	}
}

// decodeLimit is the limit that a number states; none is no limit.
func decodeLimit(n *int64) quota.Limit {
	if n == nil {
		return quota.Limit{}
	}
	return quota.AtMost(*n)
}

func encodeLimit(l quota.Limit) *int64 {
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
	return quota.Bounds{quota.GPUs: decodeLimit(b.GPUs), quota.GPUMemoryMiB: decodeLimit(b.GPUMemoryMiB),
		quota.CPUs: decodeLimit(b.CPUs), quota.MemoryMiB: decodeLimit(b.MemoryMiB),
		quota.Bookings: decodeLimit(b.Bookings)}
}

func encodeBounds(b quota.Bounds) contract.Bounds {
	return contract.Bounds{GPUs: encodeLimit(b[quota.GPUs]), GPUMemoryMiB: encodeLimit(b[quota.GPUMemoryMiB]),
		CPUs:      encodeLimit(b[quota.CPUs]),
		MemoryMiB: encodeLimit(b[quota.MemoryMiB]), Bookings: encodeLimit(b[quota.Bookings])}
}

func encodeUsage(u ledger.Usage) contract.QuotaUsage {
	l := u.Organization.Limits
	out := contract.QuotaUsage{OrganizationID: u.Organization.ID, At: u.At.UTC(), Until: u.Until.UTC(),
		Speculation: formatMoney(u.Speculative.Cost), SpeculationLimit: formatMoney(l.SpeculationPerDay),
		Period: contract.PeriodUsage{Period: string(l.Period), Start: l.Period.Start(u.At), End: l.Period.Next(u.At),
			GPUHours: float64(u.Period.GPUSeconds) / 3600, GPUHoursLimit: encodeLimit(l.GPUHours),
			Money: formatMoney(u.Period.Cost), MoneyLimit: optionalMoney(l.MoneyPerPeriod)},
	}
	nominal := l.Nominal()
	for r := range u.Now {
		out.Resources = append(out.Resources, contract.ResourceUsage{Resource: quota.Resource(r).String(),
			Now: u.Now[r], Peak: u.Peak[r],
			Limit: encodeLimit(nominal[r]), Ceiling: ceilingOf(l, quota.Resource(r))})
	}
	return out
}

// ceilingOf is how far an organization may go with what it borrows; nil: there is
// no limit.
func ceilingOf(l quota.Limits, r quota.Resource) *int64 {
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
		GPUHoursPerDay: decodeLimit(c.GPUHoursPerDay)}
}

// encodeCaps encodes caps that hold; nil when there are none.
func encodeCaps(c quota.Caps) *contract.Caps {
	if c == (quota.Caps{}) {
		return nil
	}
	return &contract.Caps{MaxGPUs: c.MaxGPUs, MaxPerDay: formatMoney(c.MaxPerDay),
		MaxLeadSeconds:   int64(c.MaxLead / time.Second),
		MaxWindowSeconds: int64(c.MaxWindow / time.Second), GPUHoursPerDay: encodeLimit(c.GPUHoursPerDay)}
}

// encodeCapsUse is what is used of caps; nil when there are none.
func encodeCapsUse(c quota.Caps, used *quota.Commitments, now time.Time) *contract.CapsUse {
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
