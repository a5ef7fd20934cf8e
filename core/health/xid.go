package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Decision is what an XID says of the GPU on which it came.
type Decision string

// The decisions about XIDs.
const (
	AppFault   Decision = "app_fault"   // a program's own fault: the GPU stays healthy
	Count      Decision = "count"       // nothing alone; many in an hour: degraded
	ResetLater Decision = "reset_later" // degraded: to be reset before the next hand-over
	Reset      Decision = "reset"       // unhealthy until it was reset
	Replace    Decision = "replace"     // unhealthy until its machine was restarted or replaced
	Ignore     Decision = "ignore"      // another event or counter says what it means
)

// Decisions are all there are.
var Decisions = []Decision{AppFault, Count, ResetLater, Reset, Replace, Ignore}

// decisions are what NVIDIA's catalogue of XIDs and the health checks of large
// clouds agree on. Where they do not (63, 92, 94), the milder one stands here, and a
// policy may say otherwise. 154 announces field 230, and 45 follows another XID.
var decisions = map[int]Decision{
	8: AppFault, 11: AppFault, 13: AppFault, 25: AppFault, 31: AppFault, 32: AppFault, 39: AppFault, 40: AppFault,
	41: AppFault, 43: AppFault, 44: AppFault, 68: AppFault, 69: AppFault, 80: AppFault, 82: AppFault, 83: AppFault,
	94: AppFault,
	63: ResetLater,
	46: Reset, 48: Reset, 62: Reset, 64: Reset, 95: Reset, 109: Reset, 110: Reset, 119: Reset, 120: Reset, 136: Reset,
	140: Reset, 143: Reset, 155: Reset, 156: Reset, 158: Reset,
	74: Reset, 144: Reset, 145: Reset, 146: Reset, 147: Reset, 148: Reset, 149: Reset, 150: Reset,
	54: Replace, 79: Replace, 142: Replace, 151: Replace,
	37: Count, 38: Count, 66: Count, 92: Count, 93: Count, 121: Count, 137: Count, 141: Count, 157: Count, 160: Count,
	161: Count,
	45:  Ignore, 154: Ignore,
}

// suspiciousRepeats are the XIDs of programs that, on one GPU alone and again within a
// day, are more likely the GPU's.
var suspiciousRepeats = []int{13, 31}

const (
	day        = 24 * time.Hour
	slowWindow = 10 * time.Minute
)

// Policy is by what rules GPUs are judged. Zero fields get their defaults.
type Policy struct {
	XIDs        map[int]Decision // instead of what the table says
	AgreeAfter  time.Duration    // between the two looks that agree; default 10 s
	QuietFor    time.Duration    // until a degraded GPU is healthy; default 10 minutes
	MissedLooks int              // in a row, until nothing is known; default 3
	XIDsPerHour int              // of those that mean little alone; default 10
	SlowLooks   int              // with a slowdown in 10 minutes; default 6
}

func (p Policy) withDefaults() Policy {
	p.AgreeAfter = cmp.Or(p.AgreeAfter, 10*time.Second)
	p.QuietFor = cmp.Or(p.QuietFor, 10*time.Minute)
	p.MissedLooks = cmp.Or(p.MissedLooks, 3)
	p.XIDsPerHour = cmp.Or(p.XIDsPerHour, 10)
	p.SlowLooks = cmp.Or(p.SlowLooks, 6)
	return p
}

// Check returns an error for a policy that decides on something unknown.
func (p Policy) Check() error {
	for _, code := range slices.Sorted(maps.Keys(p.XIDs)) {
		if code < 1 || !slices.Contains(Decisions, p.XIDs[code]) {
			return fmt.Errorf("xids: %d: %q: want one of %v for a number above 0", code, p.XIDs[code], Decisions)
		}
	}
	return nil
}

// Decide returns what an XID says. One that is in no table is counted: it never takes a
// GPU out of use alone.
func (p Policy) Decide(code int) Decision {
	return cmp.Or(p.XIDs[code], decisions[code], Count)
}

func xidRule(code int) string { return fmt.Sprintf("xid_%d", code) }

// xidFault is the fault that one event is, if it is one.
func xidFault(x XID, p Policy) (Fault, bool) {
	f := Fault{Rule: xidRule(x.Code), Level: Unhealthy, Stays: true}
	switch p.Decide(x.Code) {
	case ResetLater:
		f.Level, f.Stays, f.Detail = Degraded, false, "reset the GPU before it is handed over"
	case Reset:
		f.Detail = "the GPU must be reset"
	case Replace:
		f.Detail = "the machine must be restarted, or the GPU replaced"
	default:
		return Fault{}, false
	}
	f.Detail = fmt.Sprintf("XID %d: %s", x.Code, f.Detail)
	return f, true
}
