package contract

import (
	"encoding/json"
	"time"
)

// The kinds of plan: the verb that it is of.
const (
	PlanReserve   = "reserve"    // request is a ReservationCreate
	PlanAllocate  = "allocate"   // an AllocationCreate
	PlanClaim     = "claim"      // a PlannedClaim
	PlanRelease   = "release"    // a PlannedRelease
	PlanCancel    = "cancel"     // a PlannedCancel
	PlanQuota     = "quota"      // a PlannedQuota
	PlanPool      = "pool"       // a PlannedPool
	PlanNode      = "node"       // a PlannedNode
	PlanAgentPlan = "agent_plan" // an AgentPlan
)

// PlanKinds lists the kinds of plan.
var PlanKinds = []string{PlanReserve, PlanAllocate, PlanClaim, PlanRelease, PlanCancel, PlanQuota, PlanPool,
	PlanNode, PlanAgentPlan}

// PlanCreate asks to be shown what a request would do.
type PlanCreate struct {
	Kind    string          `json:"kind" enum:"reserve,allocate,claim,release,cancel,quota,pool,node,agent_plan"`
	Request json.RawMessage `json:"request"`
}

// PlannedClaim is a Claim and what it claims.
type PlannedClaim struct {
	ReservationID string `json:"reservation_id" minLength:"1" maxLength:"64"`
	Claim
}

// PlannedRelease names the allocation to give back.
type PlannedRelease struct {
	AllocationID string `json:"allocation_id" minLength:"1" maxLength:"64"`
}

// PlannedCancel names the reservation to give back.
type PlannedCancel struct {
	ReservationID string `json:"reservation_id" minLength:"1" maxLength:"64"`
}

// PlannedQuota is an organization's new limits. Version is the one that was read.
type PlannedQuota struct {
	OrganizationID string `json:"organization_id" minLength:"1" maxLength:"64"`
	Version        int    `json:"version" minimum:"1"`
	Limits         Limits `json:"limits"`
	Force          bool   `json:"force,omitempty" doc:"As in setQuota."`
}

// PlannedPool is a change of a pool. Version is the one that was read.
type PlannedPool struct {
	PoolID  string `json:"pool_id" minLength:"1" maxLength:"64"`
	Version int    `json:"version" minimum:"1"`
	PoolPatch
}

// NodeHalt says why a node is to take no new work.
type NodeHalt struct {
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"For operators: in the journal and in explain."`
}

// PlannedNode is a change of a node. Version is the one that was read.
type PlannedNode struct {
	NodeID  string `json:"node_id" minLength:"1" maxLength:"64"`
	Version int    `json:"version" minimum:"1"`
	NodePatch
}

// Plan is what a request would do. It holds nothing: applied, it does what it
// shows or nothing at all.
type Plan struct {
	ID           string          `json:"id"`
	Kind         string          `json:"kind" enum:"reserve,allocate,claim,release,cancel,quota,pool,node,agent_plan"`
	Request      json.RawMessage `json:"request"`
	Diff         []RowChange     `json:"diff" nullable:"false"`
	Cost         Money           `json:"cost" doc:"What it commits in addition."`
	Quota        QuotaChange     `json:"quota"`
	Wait         *WaitEstimate   `json:"wait,omitempty" doc:"Present when its GPUs are not ready immediately."`
	Displaced    []string        `json:"displaced" nullable:"false"`
	Others       int             `json:"displaced_others" doc:"How many reservations of others give way."`
	Reasons      []Blocker       `json:"reasons" nullable:"false" doc:"Why parts of an agent's plan get no place."`
	Offers       []Offer         `json:"offers" nullable:"false" doc:"What those parts could have instead."`
	State        string          `json:"state" enum:"open,applied,expired"`
	CreatedAt    time.Time       `json:"created_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	AppliedAt    time.Time       `json:"applied_at,omitzero"`
	Answer       json.RawMessage `json:"answer,omitempty" doc:"After it was applied: the answer to the request."`
	AnswerStatus int             `json:"answer_status,omitempty"`
}

// RowChange is one thing that comes, changes or ends.
type RowChange struct {
	Kind   string        `json:"kind" enum:"organization,pool,node,reservation,allocation"`
	ID     string        `json:"id,omitempty" doc:"Of what is there already."`
	Change string        `json:"change" enum:"created,changed,ended"`
	Fields []FieldChange `json:"fields" nullable:"false"`
}

// FieldChange is one value before and after; null stands for none.
type FieldChange struct {
	Name string          `json:"name"`
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// QuotaChange is the organization's GPUs, at the instant when they are most, of
// the time that the request is about.
type QuotaChange struct {
	OrganizationID string `json:"organization_id,omitempty"`
	GPUsBefore     int    `json:"gpus_before"`
	GPUsAfter      int    `json:"gpus_after"`
	MaxGPUs        int    `json:"max_gpus"`
}

// plansTags are the rests of tags that are too long for their lines.
var plansTags = tags{
	"PlanCreate.Request": `doc:"The body of the kind's own route, plus the id from that route's path: ` +
		`reservation_id, allocation_id, organization_id or pool_id."`,
	"Plan.Displaced": `doc:"Reservations that give way; those of others are only counted."`,
	"QuotaChange.OrganizationID": `doc:"The organization they belong to: the one that is changed, otherwise your ` +
		`own. Absent, with all numbers 0, where a pool is changed."`,
}
