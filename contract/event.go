package contract

import "time"

// EventStreamEnded is the type of a stream's last message, when the server ends
// it for a reason: the key was revoked, has expired, or may see other things now.
// It is no event of the journal; its Seq is that of the last one before it.
const EventStreamEnded = "stream.ended"

// Event is one thing that happened.
type Event struct {
	Seq              int64     `json:"seq" doc:"Grows; resume after it."`
	Time             time.Time `json:"time"`
	Type             string    `json:"type" example:"node.ready" doc:"Kind of subject and what became of it."`
	Subject          string    `json:"subject"`
	OrganizationID   string    `json:"organization_id,omitempty"`
	OrganizationName string    `json:"organization_name,omitempty"`
	PoolID           string    `json:"pool_id,omitempty"`
	PoolName         string    `json:"pool_name,omitempty"`
	Actor            string    `json:"actor,omitempty" doc:"Id of a key, or a part of the system."`
	ActorName        string    `json:"actor_name,omitempty" doc:"Name of the key or schedule, if the reader may see it."`
	Via              string    `json:"via,omitempty"`
	Reason           string    `json:"reason,omitempty"`
	Message          string    `json:"message,omitempty"`
}

// EventList is a page of events. Next is what to send as after.
type EventList struct {
	Items []Event `json:"items" nullable:"false"`
	Next  int64   `json:"next"`
}

// Report holds the two numbers that are always shown together: how often nobody
// had to wait, and what that cost.
type Report struct {
	From           time.Time `json:"from"`
	To             time.Time `json:"to"`
	Starts         int       `json:"starts" doc:"Allocations that got their GPUs."`
	ZeroWaitStarts int       `json:"zero_wait_starts" doc:"Of them, those that waited at most 5 s."`
	ZeroWaitRate   *float64  `json:"zero_wait_rate,omitempty" doc:"Share from 0 to 1; absent without starts."`
	MeanWait       float64   `json:"mean_wait_seconds"`
	P95Wait        float64   `json:"p95_wait_seconds"`
	Waits          []Waits   `json:"waits,omitempty"`
	IdleWaste      *Money    `json:"idle_waste,omitempty"`
	IdleWasteShare *float64  `json:"idle_waste_share,omitempty"`
	TotalCost      *Money    `json:"total_cost,omitempty"`
	BusyCost       Money     `json:"busy_cost" doc:"While somebody held the GPUs."`
	IdleCost       *Money    `json:"idle_cost,omitempty" doc:"Ready, and nobody held them."`
	BootCost       *Money    `json:"boot_cost,omitempty"`
	MinBillingCost *Money    `json:"min_billing_cost,omitempty"`
	OrphanCost     *Money    `json:"orphan_cost,omitempty" doc:"Machines that belonged to no node."`
	BusyGPUHours   float64   `json:"busy_gpu_hours"`
	IdleGPUHours   *float64  `json:"idle_gpu_hours,omitempty"`
	BootGPUHours   *float64  `json:"boot_gpu_hours,omitempty"`
	Activity       Activity  `json:"activity"`
}

// Activity divides what somebody held by what the GPUs did. Its parts add up to it.
type Activity struct {
	Used       ActivityPart `json:"used" doc:"They were seen to do something, with pauses of less than five minutes."`
	Idle       ActivityPart `json:"idle" doc:"They were seen to do nothing for five minutes or more."`
	Unobserved ActivityPart `json:"unobserved"`
}

// ActivityPart is a part of what somebody held.
type ActivityPart struct {
	GPUHours float64 `json:"gpu_hours"`
	Cost     Money   `json:"cost"`
}

// Waits counts work in observed pools by what it waits, or has waited, for.
type Waits struct {
	Reason      string  `json:"reason"`
	Starts      int     `json:"starts" doc:"In the period, after a wait for it."`
	MeanSeconds float64 `json:"mean_seconds" doc:"Of their waits for it."`
	Waiting     int     `json:"waiting,omitempty" doc:"Work that waits for it now."`
}

// eventTags are the rests of tags that are too long for their lines.
var eventTags = tags{
	"Report.Waits": `doc:"Of the starts that a cluster's own scheduler made, those that waited, by what for. Absent ` +
		`where none did."`,
	"Report.Activity": `doc:"What the GPUs did while somebody held them: its parts add up to busy_gpu_hours and ` +
		`busy_cost."`,
	"Activity.Unobserved": `doc:"Nobody looked: no daemon told of them, or not what they do. That is not idleness."`,
	"Waits.Reason": `enum:"boot,dependencies,limits,other,priority,queue,resources" doc:"Boot, for nodes that ` +
		`booted, which warmer ones would have spared. All else is the cluster's affair, and no part of any wait; queue ` +
		`is something of it that no look has seen."`,
	"Report.IdleWaste": `doc:"What machines cost while nobody held their GPUs: idle, booting, minimum billing and ` +
		`orphans. Absent, like its parts, in the report of one organization: nodes are shared."`,
	"Report.IdleWasteShare": `doc:"Of all node cost, from 0 to 1; absent without cost."`,
	"Report.TotalCost":      `doc:"Busy cost and idle waste: the total of GET /v1/reports/costs for the same period."`,
	"Report.BootCost":       `doc:"From birth to ready, and from the start of removal to its end."`,
	"Report.MinBillingCost": `doc:"What providers' minimum billing adds to machines that lived shorter."`,
}
