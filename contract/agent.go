package contract

import "time"

// AgentPlan is everything that an agent may send: the windows in which it
// expects a need in one pool. It replaces the plan before. It holds identifiers
// of ours, numbers, enums and times; there is no field for words.
type AgentPlan struct {
	PoolID  string        `json:"pool_id" pattern:"^pol_[0-9a-hjkmnp-tv-z]{26}$" maxLength:"30"`
	Windows []AgentWindow `json:"windows" maxItems:"1000" nullable:"false"`
}

// AgentWindow is one expected need.
type AgentWindow struct {
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	GPUs        int       `json:"gpus" minimum:"1" maximum:"100000"`
	Probability float64   `json:"probability" minimum:"0" maximum:"1" doc:"The chance that it is claimed."`
	ReasonCode  string    `json:"reason_code"`
}

// PlanOutcome tells what became of each window, in the order sent.
type PlanOutcome struct {
	Windows []WindowOutcome `json:"windows" nullable:"false"`
}

// WindowOutcome is what became of one window. With Blockers it was refused, or
// only partly placed.
type WindowOutcome struct {
	Start          time.Time `json:"start"`
	End            time.Time `json:"end"`
	GPUs           int       `json:"gpus"`
	ReservationIDs []string  `json:"reservation_ids" nullable:"false"`
	Kept           int       `json:"kept" doc:"Reservations that were there already."`
	Placed         int       `json:"placed" doc:"Reservations that are new."`
	Blockers       []Blocker `json:"blockers,omitempty"`
	Offers         []Offer   `json:"offers,omitempty"`
}

// The reasons an agent may give.
const (
	ReasonRecurringPattern = "recurring_pattern"
	ReasonRecentRate       = "recent_rate"
	ReasonQueueBacklog     = "queue_backlog"
	ReasonAnnouncedWork    = "announced_work"
	ReasonScheduledWork    = "scheduled_work"
	ReasonOther            = "other"
)

// agentTags are the rests of tags that are too long for their lines.
var agentTags = tags{
	"AgentPlan.PoolID":       `patternDescription:"the id of a pool"`,
	"AgentWindow.ReasonCode": `enum:"recurring_pattern,recent_rate,queue_backlog,announced_work,scheduled_work,other"`,
}
