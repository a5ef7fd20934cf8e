package reports

import (
	"fmt"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// isLookedAt reports whether anything is known of what GPUs did while they were held.
func isLookedAt(a contract.Activity) bool { return a.Used.GPUHours > 0 || a.Idle.GPUHours > 0 }

// activityText is what GPUs did while they were held.
func activityText(a contract.Activity) string {
	return fmt.Sprintf("used %s, idle %s, not observed %s", partText(a.Used), partText(a.Idle), partText(a.Unobserved))
}

func partText(p contract.ActivityPart) string {
	return fmt.Sprintf("%s GPU-hours (%s)", format.Hours(p.GPUHours), format.Money(p.Cost))
}

// idleText is for how many GPU-hours of a line GPUs were idle while they were held: a dash
// where nobody held or saw any.
func idleText(x contract.CostLine) string {
	if x.Activity == nil || !isLookedAt(*x.Activity) {
		return "-"
	}
	return format.Hours(x.Activity.Idle.GPUHours)
}

// unobservedText is for how many GPU-hours of a line nobody looked at what was held.
func unobservedText(x contract.CostLine) string {
	if x.Activity == nil {
		return "-"
	}
	return format.Hours(x.Activity.Unobserved.GPUHours)
}
