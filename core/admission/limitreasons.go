package admission

import "github.com/forewarm/forewarm/core/quota"

// LimitReasons says in words which of an organization's limits are exceeded.
func LimitReasons(violations []quota.Violation) []Reason {
	reasons := make([]Reason, len(violations))
	for i, v := range violations {
		reasons[i] = limitReason(v)
	}
	return reasons
}
