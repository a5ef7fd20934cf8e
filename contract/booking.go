package contract

import "time"

// Device is one GPU in somebody's hands.
type Device struct {
	NodeID string `json:"node_id"`
	UUID   string `json:"uuid"`
}

// Allocation is GPUs held now, under a lease.
type Allocation struct {
	ID               string        `json:"id"`
	OrganizationID   string        `json:"organization_id"`
	OrganizationName string        `json:"organization_name,omitempty"`
	PoolID           string        `json:"pool_id"`
	PoolName         string        `json:"pool_name,omitempty"`
	Name             string        `json:"name,omitempty"`
	Workload         string        `json:"workload" enum:"online,batch"`
	HeldBy           string        `json:"held_by" doc:"Id of the key that asked."`
	HeldByName       string        `json:"held_by_name,omitempty"`
	State            string        `json:"state" enum:"pending,active,releasing,released,failed,expired,cancelled"`
	Reason           string        `json:"reason,omitempty"`
	GPUs             int           `json:"gpus"`
	Nodes            int           `json:"nodes"`
	GPUsPerNode      int           `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
	Devices          []Device      `json:"devices" nullable:"false"`
	Access           *Access       `json:"access,omitempty"`
	ReservationIDs   []string      `json:"reservation_ids" nullable:"false" doc:"What it claimed."`
	JobID            string        `json:"job_id,omitempty" doc:"Of the job that runs in it; left out: none does."`
	LeaseSeconds     int64         `json:"lease_seconds"`
	RequestedAt      time.Time     `json:"requested_at"`
	ActiveAt         time.Time     `json:"active_at,omitzero"`
	LeaseUntil       time.Time     `json:"lease_until,omitzero"`
	EndedAt          time.Time     `json:"ended_at,omitzero"`
	WaitSeconds      *float64      `json:"wait_seconds,omitempty"`
	ZeroWait         *bool         `json:"zero_wait,omitempty"`
	EstimatedCost    Money         `json:"estimated_cost"`
	UsedUntil        time.Time     `json:"used_until,omitzero"`
	IdleSince        time.Time     `json:"idle_since,omitzero"`
	IdleCost         *Money        `json:"idle_cost,omitempty"`
	IdleWarnedAt     time.Time     `json:"idle_warned_at,omitzero"`
	IdleReclaimAt    time.Time     `json:"idle_reclaim_at,omitzero"`
	Work             *ClusterWork  `json:"work,omitempty"`
	Wait             *WaitEstimate `json:"wait,omitempty"`
	Version          int           `json:"version"`
}

// ClusterWork is a job or pod that a cluster's own scheduler placed.
type ClusterWork struct {
	ID        string    `json:"id" doc:"The cluster's, which tells each run from all others."`
	Label     string    `json:"label" doc:"The job's number or name as its user knows it."`
	Account   string    `json:"account,omitempty"`
	User      string    `json:"user,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Queue     string    `json:"queue,omitempty"`
	QueuedAt  time.Time `json:"queued_at,omitzero" doc:"When it could have begun for all that its owner had set."`
	WaitedFor string    `json:"waited_for,omitempty"`
	WarmNodes int       `json:"warm_nodes" doc:"Of its nodes, those that were kept warm."`
}

// Layout is how the GPUs of a request lie on nodes. Left out, they lie on as few
// as can be: in equal parts where so many nodes allow it, and else on full nodes
// and the rest on one more.
type Layout struct {
	Nodes       int    `json:"nodes,omitempty" minimum:"1" maximum:"100000"`
	GPUsPerNode int    `json:"gpus_per_node,omitempty" minimum:"1" maximum:"1024"`
	Spread      string `json:"spread,omitempty" enum:"any,even" default:"any"`
}

// Needs is what a pool must have to serve a request. What is left out does not
// bind.
type Needs struct {
	Region           string `json:"region,omitempty" maxLength:"63" doc:"Only a pool in this region."`
	MinGPUMemoryMiB  int    `json:"min_gpu_memory_mib,omitempty" minimum:"1" maximum:"16777216"`
	MinNodeMemoryMiB int    `json:"min_node_memory_mib,omitempty" minimum:"1" maximum:"1073741824"`
}

// AllocationCreate asks for GPUs now. Name a pool, or a model or needs: then any
// pool that has them may serve, one where GPUs are ready at once before others,
// and the cheapest of those. Where there is one pool alone nothing need be named.
type AllocationCreate struct {
	Pool  string `json:"pool,omitempty" maxLength:"63"`
	Model string `json:"model,omitempty" maxLength:"63"`
	Needs
	GPUs int `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"May be left out with nodes and gpus_per_node."`
	Layout
	LeaseSeconds int64  `json:"lease_seconds,omitempty" minimum:"1" maximum:"31536000" default:"3600"`
	Name         string `json:"name,omitempty" maxLength:"63"`
	Workload     string `json:"workload,omitempty" enum:"online,batch" default:"online"`
	// WaitedSeconds is what client.Poll fills in.
	WaitedSeconds int64 `json:"waited_seconds,omitempty" minimum:"0" maximum:"2592000"`
}

// Extend asks for a longer lease. What is added counts for the holder and in the
// periods in which the lease began.
type Extend struct {
	BySeconds int64 `json:"by_seconds" minimum:"1" maximum:"31536000"`
}

// Reservation is a promise of GPUs over [start, end).
type Reservation struct {
	ID               string        `json:"id"`
	OrganizationID   string        `json:"organization_id"`
	OrganizationName string        `json:"organization_name,omitempty"`
	PoolID           string        `json:"pool_id"`
	PoolName         string        `json:"pool_name,omitempty"`
	Name             string        `json:"name,omitempty"`
	Class            string        `json:"class" enum:"guaranteed,speculative"`
	Origin           string        `json:"origin" enum:"person,schedule,agent"`
	Workload         string        `json:"workload" enum:"online,batch"`
	MadeBy           string        `json:"made_by"`
	MadeByName       string        `json:"made_by_name,omitempty" doc:"Of the key or schedule."`
	State            string        `json:"state"`
	Degraded         bool          `json:"degraded" doc:"The promise will be, or was, late."`
	Reason           string        `json:"reason,omitempty"`
	ReasonCode       string        `json:"reason_code,omitempty"`
	ForJobs          string        `json:"for_jobs" enum:"none,mine,organization"`
	JobID            string        `json:"job_id,omitempty" doc:"Of the job that claimed it."`
	PartOf           string        `json:"part_of,omitempty"`
	Probability      float64       `json:"probability,omitempty" doc:"An agent's stated chance that it is claimed."`
	GPUs             int           `json:"gpus"`
	Nodes            int           `json:"nodes"`
	GPUsPerNode      int           `json:"gpus_per_node" doc:"The last node has the rest of gpus."`
	Start            time.Time     `json:"start"`
	End              time.Time     `json:"end"`
	Cost             Money         `json:"cost" doc:"What it commits; once ended, what it really held."`
	CreatedAt        time.Time     `json:"created_at"`
	WarmedAt         time.Time     `json:"warmed_at,omitzero"`
	ReadyAt          time.Time     `json:"ready_at,omitzero"`
	EndedAt          time.Time     `json:"ended_at,omitzero"`
	Wait             *WaitEstimate `json:"wait,omitempty"`
	Version          int           `json:"version"`
}

// ReservationCreate asks for a promise. Name a pool, or a model or needs: then the
// cheapest pool that has them and can serve is taken. Give start and end, or a time range, in which
// the earliest window that has a place is booked. Where there is one pool alone nothing need be named.
type ReservationCreate struct {
	Pool  string `json:"pool,omitempty" maxLength:"63"`
	Model string `json:"model,omitempty" maxLength:"63"`
	Needs
	GPUs int `json:"gpus,omitempty" minimum:"1" maximum:"100000" doc:"May be left out with nodes and gpus_per_node."`
	Layout
	Start time.Time `json:"start,omitzero" doc:"With end; left out with a time range."`
	End   time.Time `json:"end,omitzero"`
	TimeRange
	Workload string `json:"workload,omitempty" enum:"online,batch" default:"online"`
	Class    string `json:"class,omitempty" enum:"guaranteed,speculative" default:"guaranteed"`
	ForJobs  string `json:"for_jobs,omitempty" enum:"none,mine,organization"`
	Name     string `json:"name,omitempty" maxLength:"63"`
	Queue    bool   `json:"queue,omitempty" doc:"Wait for a place when there is none, instead of being refused."`
}

// Claim turns a reservation into an allocation, from the pool's lead (the 95th
// percentile of its boots and a guard) before the window's start on.
type Claim struct {
	LeaseSeconds int64  `json:"lease_seconds,omitempty" minimum:"1" maximum:"31536000"`
	Name         string `json:"name,omitempty" maxLength:"63" doc:"The reservation's, when left out."`
}

// bookingTags are the rests of tags that are too long for their lines.
var bookingTags = tags{
	"Allocation.WaitSeconds": `doc:"From the first request to the GPUs; absent while it waits."`,
	"Allocation.RequestedAt": `doc:"First, if its holder was refused for want of room and said for how long it asked."`,
	"AllocationCreate.WaitedSeconds": `doc:"For how long the holder has asked for it already, and was refused for want ` +
		`of room. It is part of the allocation's wait, and of no decision: it moves nobody forward."`,
	"Reservation.ForJobs": `doc:"Whose jobs claim it by themselves: no one's, those of who made it, or of all of its ` +
		`organization."`,
	"ReservationCreate.ForJobs": `doc:"Whose jobs claim it by themselves, once its time has come. ` +
		`Left out: mine, and organization of a speculative one. A job that names it claims it in any case."`,
	"Allocation.ZeroWait": `doc:"Whether it waited at most 5 s; absent while it waits."`,
	"Allocation.IdleSince": `doc:"Since when none of its GPUs has done anything, as the daemons of its nodes tell; ` +
		`left out for the first ten minutes, and while they tell of one that it does something, or nothing at all. ` +
		`Of what is listed or read, not of the answer to a change."`,
	"Allocation.UsedUntil": `doc:"Of one that is over, in lists that are asked for with used=true: when it ended, less ` +
		`the idleness of all of its GPUs that was seen at its end. Who used none of them has active_at."`,
	"Allocation.IdleCost":     `doc:"What it has cost since then, as far as was looked, at the pool's price."`,
	"Allocation.IdleWarnedAt": `doc:"When its holder was warned of that, by the pool's policy; left out before."`,
	"Allocation.IdleReclaimAt": `doc:"When it ends unless one of its GPUs does something before, by the pool's policy; ` +
		`left out where it does not."`,
	"Allocation.EstimatedCost": `doc:"Cost of the lease held to its end, at the pool's price; after its end, of ` +
		`the time that was held."`,
	"Allocation.Access": `doc:"How its holder gets to the GPUs. Present while it is active, where this allocation is ` +
		`read alone or waited for, to keys of the organization that holds it with the role member or more, and to ` +
		`operators."`,
	"Allocation.Work": `doc:"In an observed pool: what the cluster placed. It has no lease and ends with the work."`,
	"ClusterWork.WaitedFor": `doc:"What else it waited for last than nodes that booted, which is no part of its wait: ` +
		`resources, priority, limits, dependencies or other; queue, something of these that no look has seen; unwatched, ` +
		`it was there before anybody watched; left out for nothing."`,
	"Allocation.Wait":       `doc:"How much longer it waits; present while it does, when it is read."`,
	"Layout.Nodes":          `doc:"The number of nodes. With gpus_per_node, gpus may be left out."`,
	"Layout.GPUsPerNode":    `doc:"GPUs on each node; the last has fewer if gpus says so."`,
	"Layout.Spread":         `doc:"even: the same number on every node."`,
	"Needs.MinGPUMemoryMiB": `doc:"Only GPUs with at least this much memory."`,
	"Needs.MinNodeMemoryMiB": `doc:"Only nodes with at least this much memory; a pool that does not state it does ` +
		`not fit."`,
	"AllocationCreate.Pool":     `doc:"Id or name. Left out: any pool that fits, warm first, then the cheapest."`,
	"AllocationCreate.Workload": `doc:"What it is for; pools may keep a share for each."`,
	"Extend.BySeconds": `doc:"The added time counts for the key that holds the lease, within its caps, on the day ` +
		`and in the month in which the lease began. A key with caps extends only leases that count for those caps."`,
	"Reservation.PartOf": `doc:"The reservation of which a job claimed a part, so that this is another part of it; left ` +
		`out: it is none."`,
	"Reservation.State": `enum:"booked,waitlisted,warming,ready,claimed,cancelled,expired,failed"`,
	"Reservation.Wait": `doc:"How much longer it waits for a place or for its nodes; present while it does, when it ` +
		`is read."`,
	"ReservationCreate.Pool":     `doc:"Id or name. Left out: the cheapest that fits and can serve."`,
	"ReservationCreate.Workload": `doc:"What it is for; pools may keep a share for each."`,
	"Claim.LeaseSeconds":         `doc:"Until the end of the window, when left out; at most as long as the window."`,
}
