package admission

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
)

// limitReason says in words which of the organization's limits is in the way.
func limitReason(v quota.Violation) Reason {
	r := Reason{Limit: v.Limit, Asked: v.Asked, At: v.At, ClearsAt: v.ClearsAt}
	switch v.Rule {
	case quota.RuleNominal:
		r.Code, r.Unit = QuotaExceeded, v.Resource.String()
		r.Message = fmt.Sprintf("the organization may hold %s at once; with this it would hold %d",
			formatAmount(v.Limit, v.Resource), v.Asked)
	case quota.RuleCohort:
		r.Code, r.Unit = CohortExhausted, v.Resource.String()
		r.Message = fmt.Sprintf("the cohort lends %s at once; with this %d would be in use",
			formatAmount(v.Limit, v.Resource), v.Asked)
	case quota.RuleGPUHours:
		r.Code, r.Unit = GPUHoursExceeded, "gpu_seconds"
		r.Message = fmt.Sprintf("the organization may use %s a %s; with this it would use %s", gpuHours(v.Limit),
			v.Period, gpuHours(v.Asked))
	case quota.RuleMoney:
		r.Code, r.Unit = SpendingExceeded, "micro_usd"
		r.Message = fmt.Sprintf("the organization may spend %s a %s; with this it would spend %s",
			money.MicroUSD(v.Limit), v.Period, money.MicroUSD(v.Asked))
	default:
		r.Code, r.Unit = BudgetExceeded, "micro_usd"
		r.Message = fmt.Sprintf("speculation may cost %s on that day; with this it would cost %s",
			money.MicroUSD(v.Limit), money.MicroUSD(v.Asked))
	}
	return r
}

// capReason says which cap of a key, its user or its maker is in the way; who
// tells whose it is.
func capReason(code Code, who string, v quota.Violation) Reason {
	r := Reason{Code: code, Limit: v.Limit, Asked: v.Asked, At: v.At, ClearsAt: v.ClearsAt}
	switch v.Rule {
	case quota.RuleNominal:
		r.Unit, r.Message = v.Resource.String(),
			fmt.Sprintf("%s may promise itself %s at once; with this it would be %d", who, phrase.Count(v.Limit, "GPU"),
				v.Asked)
	case quota.RuleMoney:
		r.Unit, r.Message = "micro_usd", fmt.Sprintf("%s may commit %s a day; with this it would commit %s", who,
			money.MicroUSD(v.Limit), money.MicroUSD(v.Asked))
	case quota.RuleGPUHours:
		r.Unit, r.Message = "gpu_seconds", fmt.Sprintf("%s may commit %s a day; with this it would commit %s", who,
			gpuHours(v.Limit), gpuHours(v.Asked))
	case quota.RuleLead:
		r.Unit, r.Message = "lead_seconds", fmt.Sprintf("%s may reserve at most %s ahead", who, formatSeconds(v.Limit))
	default:
		r.Unit, r.Message = "window_seconds", fmt.Sprintf("%s may reserve windows of at most %s", who,
			formatSeconds(v.Limit))
	}
	return r
}

func formatAmount(n int64, r quota.Resource) string {
	switch r {
	case quota.GPUMemoryMiB, quota.MemoryMiB:
		return fmt.Sprintf("%d %s", n, [...]string{quota.GPUMemoryMiB: "MiB of GPU memory",
			quota.MemoryMiB: "MiB of memory"}[r])
	default:
		return phrase.Count(n, [...]string{quota.GPUs: "GPU", quota.CPUs: "CPU", quota.Bookings: "booking"}[r])
	}
}

func gpuHours(s int64) string { return fmt.Sprintf("%.1f GPU-hours", float64(s)/3600) }

func formatSeconds(n int64) string { return phrase.Length(time.Duration(n) * time.Second) }
