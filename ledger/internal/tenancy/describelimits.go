package tenancy

import (
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// describeLimits says what an organization may have, with all that bounds it, for the journal.
func describeLimits(l quota.Limits) string {
	parts := []string{phrase.Count(l.GPUs, "GPU"), l.SpeculationPerDay.String() + " of speculation a day"}
	period := l.Period
	if period == "" {
		period = quota.PerDay
	}
	for _, bound := range []struct {
		limit quota.Limit
		text  string
	}{
		{l.GPUHours, "%d GPU-hours a " + string(period)},
		{l.GPUMemoryMiB, "%d MiB of GPU memory"},
		{l.CPUs, "%d CPUs"},
		{l.MemoryMiB, "%d MiB of memory"},
		{l.Bookings, "%d reservations and allocations"},
	} {
		if n, bounded := bound.limit.Bound(); bounded {
			parts = append(parts, fmt.Sprintf(bound.text, n))
		}
	}
	if n, bounded := l.MoneyPerPeriod.Bound(); bounded {
		parts = append(parts, fmt.Sprintf("%s a %s", money.MicroUSD(n), period))
	}
	if l.Cohort != "" {
		parts = append(parts, "cohort "+l.Cohort)
	}
	if l.Weight > 1 {
		parts = append(parts, fmt.Sprintf("weight %d", l.Weight))
	}
	return ledger.ClipText(strings.Join(parts, ", "), 300)
}
