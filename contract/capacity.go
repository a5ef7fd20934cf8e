package contract

import "time"

// Pool is one kind of capacity.
type Pool struct {
	ID                 string        `json:"id"`
	Name               string        `json:"name"`
	Provisioner        string        `json:"provisioner"`
	Region             string        `json:"region,omitempty"`
	InstanceType       string        `json:"instance_type,omitempty"`
	Model              string        `json:"model"`
	GPUsPerNode        int           `json:"gpus_per_node" doc:"Where GPUs are shared, shares."`
	SharesPerGPU       int           `json:"shares_per_gpu"`
	GPUMemoryMiB       int           `json:"gpu_memory_mib" doc:"Where GPUs are shared, of a share."`
	NodeCPUs           int           `json:"node_cpus" doc:"For one node; 0: unknown, and not counted."`
	NodeMemoryMiB      int           `json:"node_memory_mib" doc:"For one node; 0: unknown, and not counted."`
	PricePerNodeHour   Money         `json:"price_per_node_hour" doc:"Of one node."`
	MinBillingSeconds  int64         `json:"min_billing_seconds" doc:"The shortest time that is charged."`
	Alternates         []PoolSource  `json:"alternates,omitempty"`
	MinNodes           int           `json:"min_nodes"`
	MaxNodes           int           `json:"max_nodes"`
	WarmHoldSeconds    int64         `json:"warm_hold_seconds"`
	IdleReleaseSeconds int64         `json:"idle_release_seconds"`
	MaxLeaseSeconds    int64         `json:"max_lease_seconds"`
	CleaningSeconds    int64         `json:"cleaning_seconds" doc:"Kept free on a node between two bookings."`
	IdleWarnAfter      int64         `json:"idle_warn_after_seconds"`
	IdleReclaimAfter   int64         `json:"idle_reclaim_after_seconds"`
	MaxCreates         int           `json:"max_creates"`
	CreateWindow       int64         `json:"create_window_seconds"`
	OnlineShare        int           `json:"online_share"`
	BorrowIdle         bool          `json:"borrow_idle" doc:"A workload may use what the other leaves free."`
	Paused             bool          `json:"paused" doc:"Speculative pre-warming is switched off."`
	Simulated          bool          `json:"simulated"`
	Use                string        `json:"use" enum:"reserved,observed"`
	Holders            []PoolHolder  `json:"holders,omitempty"`
	DefaultHolder      string        `json:"default_organization,omitempty"`
	Access             string        `json:"access" enum:"shell,devices"`
	Isolation          string        `json:"isolation" enum:"devices,user,environment"`
	MinDriver          string        `json:"min_driver,omitempty"`
	Labels             Labels        `json:"labels,omitempty" doc:"Of all its nodes, for jobs to ask for."`
	Taints             []string      `json:"taints,omitempty" doc:"Each keeps jobs away that do not tolerate it."`
	BootP50Seconds     float64       `json:"boot_p50_seconds"`
	BootP95Seconds     float64       `json:"boot_p95_seconds"`
	BootSamples        int           `json:"boot_samples"`
	LeadSeconds        float64       `json:"lead_seconds,omitempty"`
	Recovering         bool          `json:"recovering,omitempty"`
	NoWorkerSince      time.Time     `json:"no_worker_since,omitzero" doc:"No worker has been seen since."`
	Failing            *Failure      `json:"failing,omitempty"`
	BlockedUntil       time.Time     `json:"blocked_until,omitzero"`
	CappedUntil        time.Time     `json:"creation_capped_until,omitzero"`
	Sources            []SourceState `json:"sources" nullable:"false"`
	GPUCounts          *GPUCounts    `json:"gpu_counts,omitempty"`
	Room               *PoolRoom     `json:"room,omitempty"`
	CreatedAt          time.Time     `json:"created_at"`
	Version            int           `json:"version"`
}

// Failure is work at a provider that failed again and again, and is tried again.
type Failure struct {
	Count   int       `json:"count" doc:"In a row."`
	LastAt  time.Time `json:"last_at"`
	Message string    `json:"message"`
}

// GPUCounts are GPUs of live nodes by what becomes of them.
type GPUCounts struct {
	Total       int `json:"total"`
	Free        int `json:"free"`
	Held        int `json:"held" doc:"By allocations."`
	Booked      int `json:"booked" doc:"Kept for bookings that are due."`
	Coming      int `json:"coming" doc:"On nodes that are coming."`
	Unavailable int `json:"unavailable" doc:"On nodes that take no work, or being cleaned."`
}

// PoolRoom is what is free on the nodes of an observed pool's cluster that are up.
type PoolRoom struct {
	SeenAt    time.Time     `json:"seen_at"`
	IdleNodes int           `json:"idle_nodes" doc:"Up, and no work is on them."`
	Shared    []SharedNodes `json:"shared" nullable:"false" doc:"Up, with work, and with GPUs free beside it."`
}

// SharedNodes counts nodes that have work, and as many GPUs free beside it.
type SharedNodes struct {
	FreeGPUs int `json:"free_gpus" doc:"Of each of them."`
	Nodes    int `json:"nodes"`
}

// PoolCreate defines a pool.
type PoolCreate struct {
	Name               string       `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9][a-z0-9-]*$"`
	Provisioner        string       `json:"provisioner" minLength:"1" maxLength:"63"`
	Region             string       `json:"region,omitempty" maxLength:"63"`
	InstanceType       string       `json:"instance_type,omitempty" maxLength:"63"`
	Model              string       `json:"model" minLength:"1" maxLength:"63"`
	GPUsPerNode        int          `json:"gpus_per_node" minimum:"1" maximum:"64" doc:"Where GPUs are shared, shares."`
	SharesPerGPU       int          `json:"shares_per_gpu,omitempty" minimum:"1" maximum:"64" default:"1"`
	GPUMemoryMiB       int          `json:"gpu_memory_mib" minimum:"1" maximum:"16777216"`
	NodeCPUs           int          `json:"node_cpus,omitempty" minimum:"0" maximum:"65536"`
	NodeMemoryMiB      int          `json:"node_memory_mib,omitempty" minimum:"0" maximum:"1073741824"`
	PricePerNodeHour   Money        `json:"price_per_node_hour"`
	MinBillingSeconds  int64        `json:"min_billing_seconds,omitempty" minimum:"0" maximum:"86400"`
	Alternates         []PoolSource `json:"alternates,omitempty" maxItems:"16"`
	MinNodes           int          `json:"min_nodes,omitempty" minimum:"0" maximum:"10000"`
	MaxNodes           int          `json:"max_nodes" minimum:"1" maximum:"10000"`
	WarmHoldSeconds    int64        `json:"warm_hold_seconds,omitempty" minimum:"1" maximum:"604800" default:"1200"`
	IdleReleaseSeconds *int64       `json:"idle_release_seconds,omitempty" minimum:"0" maximum:"604800" default:"600"`
	MaxLeaseSeconds    int64        `json:"max_lease_seconds,omitempty" minimum:"60" default:"604800"`
	CleaningSeconds    int64        `json:"cleaning_seconds,omitempty" minimum:"0" maximum:"86400"`
	IdleWarnAfter      int64        `json:"idle_warn_after_seconds,omitempty" minimum:"0" maximum:"31622400"`
	IdleReclaimAfter   int64        `json:"idle_reclaim_after_seconds,omitempty" minimum:"0" maximum:"31622400"`
	MaxCreates         int          `json:"max_creates,omitempty" minimum:"0" maximum:"100000"`
	CreateWindow       int64        `json:"create_window_seconds,omitempty" minimum:"1" maximum:"86400" default:"600"`
	OnlineShare        int          `json:"online_share,omitempty" minimum:"0" maximum:"1000"`
	BorrowIdle         bool         `json:"borrow_idle,omitempty" doc:"A workload may use what the other leaves free."`
	Simulated          bool         `json:"simulated,omitempty"`
	Use                string       `json:"use,omitempty" enum:"reserved,observed" default:"reserved"`
	Holders            []PoolHolder `json:"holders,omitempty" maxItems:"1000"`
	DefaultHolder      string       `json:"default_organization,omitempty" maxLength:"63"`
	Access             string       `json:"access,omitempty" enum:"shell,devices" default:"shell"`
	Isolation          string       `json:"isolation,omitempty" enum:"devices,user,environment" default:"user"`
	MinDriver          string       `json:"min_driver,omitempty" maxLength:"32"`
	Labels             Labels       `json:"labels,omitempty" maxProperties:"32" doc:"Of all its nodes."`
	Taints             []string     `json:"taints,omitempty" maxItems:"16" doc:"Of all its nodes."`
	BootP50Seconds     float64      `json:"boot_p50_seconds,omitempty" exclusiveMinimum:"0" default:"120"`
	BootP95Seconds     float64      `json:"boot_p95_seconds,omitempty" exclusiveMinimum:"0" default:"300"`
}

// PoolPatch changes what is not nil.
type PoolPatch struct {
	PricePerNodeHour   *Money        `json:"price_per_node_hour,omitempty" nullable:"false"`
	Alternates         *[]PoolSource `json:"alternates,omitempty" nullable:"false" maxItems:"16"`
	MinNodes           *int          `json:"min_nodes,omitempty" minimum:"0" maximum:"10000" nullable:"false"`
	MaxNodes           *int          `json:"max_nodes,omitempty" minimum:"1" maximum:"10000" nullable:"false"`
	WarmHoldSeconds    *int64        `json:"warm_hold_seconds,omitempty" minimum:"1" maximum:"604800" nullable:"false"`
	IdleReleaseSeconds *int64        `json:"idle_release_seconds,omitempty" minimum:"0" maximum:"604800"`
	MaxLeaseSeconds    *int64        `json:"max_lease_seconds,omitempty" minimum:"60" maximum:"31536000"`
	CleaningSeconds    *int64        `json:"cleaning_seconds,omitempty" minimum:"0" maximum:"86400" nullable:"false"`
	IdleWarnAfter      *int64        `json:"idle_warn_after_seconds,omitempty" minimum:"0" maximum:"31622400"`
	IdleReclaimAfter   *int64        `json:"idle_reclaim_after_seconds,omitempty" minimum:"0" maximum:"31622400"`
	MaxCreates         *int          `json:"max_creates,omitempty" minimum:"0" maximum:"100000" nullable:"false"`
	CreateWindow       *int64        `json:"create_window_seconds,omitempty" minimum:"1" maximum:"86400"`
	NodeCPUs           *int          `json:"node_cpus,omitempty" minimum:"0" maximum:"65536" nullable:"false"`
	NodeMemoryMiB      *int          `json:"node_memory_mib,omitempty" minimum:"0" maximum:"1073741824"`
	OnlineShare        *int          `json:"online_share,omitempty" minimum:"0" maximum:"1000" nullable:"false"`
	BorrowIdle         *bool         `json:"borrow_idle,omitempty" nullable:"false"`
	Paused             *bool         `json:"paused,omitempty" nullable:"false"`
	Holders            *[]PoolHolder `json:"holders,omitempty" nullable:"false" maxItems:"1000"`
	DefaultHolder      *string       `json:"default_organization,omitempty" maxLength:"63" nullable:"false"`
	Access             *string       `json:"access,omitempty" enum:"shell,devices" nullable:"false"`
	Isolation          *string       `json:"isolation,omitempty" enum:"devices,user,environment" nullable:"false"`
	MinDriver          *string       `json:"min_driver,omitempty" maxLength:"32" nullable:"false"`
	Labels             *Labels       `json:"labels,omitempty" nullable:"false" maxProperties:"32"`
	Taints             *[]string     `json:"taints,omitempty" nullable:"false" maxItems:"16"`
	Force              bool          `json:"force,omitempty"`
}

// Labels are what operators say of nodes, by key.
type Labels = map[string]string

// PoolHolder gives the work of a name in an observed pool to an organization. What is
// left out does not bind.
type PoolHolder struct {
	Account      string `json:"account,omitempty" maxLength:"255" doc:"Of Slurm's accounting."`
	User         string `json:"user,omitempty" maxLength:"255"`
	Namespace    string `json:"namespace,omitempty" maxLength:"255"`
	Queue        string `json:"queue,omitempty" maxLength:"255" doc:"A LocalQueue of Kueue."`
	Organization string `json:"organization" minLength:"1" maxLength:"63" doc:"Id or name; answered as id."`
}

// Node is one machine of a pool.
type Node struct {
	ID               string            `json:"id"`
	PoolID           string            `json:"pool_id"`
	PoolName         string            `json:"pool_name,omitempty"`
	Slot             int               `json:"slot" doc:"The place in the pool that it takes until it is gone."`
	Generation       int               `json:"generation"`
	State            string            `json:"state"`
	Reason           string            `json:"reason,omitempty"`
	Failing          *Failure          `json:"failing,omitempty"`
	GPUs             int               `json:"gpus" doc:"Devices it reported so far."`
	Simulated        bool              `json:"simulated"`
	Provisioner      string            `json:"provisioner,omitempty" doc:"Its source. Shown to operators."`
	Region           string            `json:"region,omitempty" doc:"Shown to operators."`
	InstanceType     string            `json:"instance_type,omitempty" doc:"Shown to operators."`
	PricePerNodeHour *Money            `json:"price_per_node_hour,omitempty"`
	ProviderID       string            `json:"provider_id,omitempty" doc:"Shown to operators."`
	Address          string            `json:"address,omitempty" doc:"Shown to operators."`
	ExpiresAt        time.Time         `json:"expires_at,omitzero"`
	RequestedAt      time.Time         `json:"requested_at"`
	BootingAt        time.Time         `json:"booting_at,omitzero"`
	ReadyAt          time.Time         `json:"ready_at,omitzero"`
	QuarantinedAt    time.Time         `json:"quarantined_at,omitzero" doc:"When its quarantine began, which goes on."`
	Kept             bool              `json:"kept,omitempty"`
	KeptReason       string            `json:"kept_reason,omitempty"`
	Resuming         bool              `json:"resuming,omitempty"`
	RetiredAt        time.Time         `json:"retired_at,omitzero"`
	GoneAt           time.Time         `json:"gone_at,omitzero"`
	Labels           map[string]string `json:"labels,omitempty" doc:"What operators say of it, for jobs to ask for."`
	Taints           []string          `json:"taints,omitempty" doc:"Each keeps jobs away that do not tolerate it."`
	HotUntil         time.Time         `json:"hot_until,omitzero" doc:"A GPU was too hot: no job starts there before."`
	Daemon           *NodeDaemon       `json:"daemon,omitempty" doc:"Left out of the answer to a change."`
	Version          int               `json:"version"`
}

// NodePatch changes what is not nil.
type NodePatch struct {
	Labels *map[string]string `json:"labels,omitempty" nullable:"false" maxProperties:"32"`
	Taints *[]string          `json:"taints,omitempty" nullable:"false" maxItems:"16"`
}

// GPU is one device of a live node.
type GPU struct {
	UUID             string   `json:"uuid" doc:"Empty until its node has come up and reported it."`
	Share            *int     `json:"share,omitempty" doc:"Its number, from 0, where it is a share of a GPU."`
	NodeID           string   `json:"node_id"`
	PoolID           string   `json:"pool_id"`
	PoolName         string   `json:"pool_name,omitempty"`
	Index            int      `json:"index"`
	Model            string   `json:"model"`
	MemoryMiB        int      `json:"memory_mib"`
	State            string   `json:"state" enum:"free,held,booked,coming,unavailable"`
	Health           string   `json:"health" enum:"healthy,degraded,unhealthy,unknown"`
	NodeState        string   `json:"node_state"`
	AllocationID     string   `json:"allocation_id,omitempty" doc:"What holds it, if that may be seen."`
	AllocationName   string   `json:"allocation_name,omitempty"`
	OrganizationID   string   `json:"organization_id,omitempty" doc:"Who holds it, if that may be seen."`
	OrganizationName string   `json:"organization_name,omitempty"`
	Simulated        bool     `json:"simulated"`
	Seen             *GPUSeen `json:"seen,omitempty" doc:"Where a daemon reports from its node."`
}

// GPUList is a page of GPUs, and of all that the filters take how many there are.
type GPUList struct {
	Items      []GPU     `json:"items" nullable:"false"`
	Totals     GPUCounts `json:"totals"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Send it as cursor to get the next page. Opaque."`
}

const minDriverTag = `doc:"The oldest GPU driver with which its nodes are used, as their daemons tell it, such as ` +
	`535.104.05; empty: any."`

// capacityTags are the rests of tags that are too long for their lines.
var capacityTags = tags{
	"Pool.Alternates": `doc:"Other sources of its machines; each machine is requested from the best source by ` +
		`price, odds and deadline. Shown to operators."`,
	"Pool.MaxCreates":  `doc:"Most nodes to request in the window that have served nobody; used nodes do not count."`,
	"Pool.OnlineShare": `doc:"Thousandths of the GPUs that are for online work, the rest for batch; 0: not split."`,
	"Pool.BootSamples": `doc:"Real boots behind the two numbers; with few, the prior counts."`,
	"Pool.LeadSeconds": `doc:"How long before its start a reservation begins to warm: the 95th percentile of boot ` +
		`times, plus a margin. Left out of the answer to a change."`,
	"Pool.Recovering": `doc:"It only reconciles until an operator confirms: nothing is made, ended, promised or ` +
		`handed out."`,
	"Pool.Failing": `doc:"Its provider keeps failing; left out while it does not, and in the answer to a ` +
		`change."`,
	"Pool.BlockedUntil": `doc:"No source had capacity; no node is requested before then."`,
	"Pool.CappedUntil": `doc:"max_creates is reached; no node is requested before then. Left out of the answer to a ` +
		`change."`,
	"Pool.Sources": `doc:"What is known about each source of its machines, its own first. Shown to ` +
		`operators."`,
	"Pool.GPUCounts": `doc:"Of its live nodes. Left out of the answer to a change."`,
	"Pool.Room": `doc:"Of an observed pool: what is free on nodes that are up, whether kept warm or not. Left out ` +
		`while its cluster was not seen for two minutes, and in the answer to a change."`,
	"Pool.Version": `doc:"Counts changes of what people set, not of what the pool learns."`,
	"Failure.Message": `doc:"For operators, what the provider said last, without secrets; for others, only whom to ` +
		`ask."`,
	"PoolCreate.Name": `patternDescription:"lower-case letters, digits and hyphens, a letter ` +
		`or digit first"`,
	"PoolCreate.MinBillingSeconds":  `doc:"The shortest time that is charged."`,
	"PoolCreate.Alternates":         `doc:"Other sources of the same machines."`,
	"PoolCreate.IdleReleaseSeconds": `nullable:"false"`,
	"PoolCreate.MaxLeaseSeconds":    `maximum:"31536000"`,
	"PoolCreate.CleaningSeconds":    `doc:"Kept free on a node between two bookings."`,
	"PoolCreate.MaxCreates": `doc:"Most nodes to request in the window that have served nobody; 0: three for each ` +
		`of max_nodes, at least 10."`,
	"PoolCreate.OnlineShare": `doc:"Thousandths of the GPUs that are for online work, the rest for batch; 0: not ` +
		`split."`,
	"PoolCreate.BootP50Seconds": `maximum:"86400" doc:"What is believed before any boot was measured."`,
	"PoolCreate.BootP95Seconds": `maximum:"86400"`,
	"Pool.Use": `doc:"reserved: Forewarm hands out its GPUs. observed: a cluster's own scheduler places the work; ` +
		`Forewarm keeps nodes warm there, and watches."`,
	"Pool.Holders": `doc:"Whose the work in an observed pool is; the first that fits. Shown to ` +
		`operators."`,
	"Pool.DefaultHolder": `doc:"Whose work is that no holder names. Shown to operators."`,
	"Pool.Isolation": `doc:"How well a node must keep holders apart for work of two organizations to be on it at once, ` +
		`as a node's own isolation says. Below it the later one opens no session there until the other's work is ` +
		`over and cleaned up."`,
	"Pool.MinDriver":       minDriverTag,
	"PoolCreate.MinDriver": minDriverTag,
	"PoolPatch.MinDriver":  minDriverTag,
	"Pool.SharesPerGPU": `doc:"How many bookings may have one GPU at once. More than 1: what is asked for, counted and ` +
		`paid for as a GPU is a share of one, whose holders run on it side by side and are not kept from taking more of ` +
		`its memory."`,
	"PoolCreate.SharesPerGPU": `doc:"How many bookings may have one GPU at once, each a share of it. gpus_per_node and ` +
		`gpu_memory_mib are of shares then."`,
	"Pool.Access": `doc:"What holders are told of its nodes. shell: how to get in; devices: only the indices and UUIDs ` +
		`of their GPUs."`,
	"PoolCreate.Use":     `doc:"observed needs a provisioner that watches its cluster."`,
	"PoolCreate.Holders": `doc:"Whose the work in an observed pool is; the first that fits."`,
	"PoolCreate.DefaultHolder": `doc:"Whose work is that no holder names, id or name; left out: the only ` +
		`organization."`,
	"PoolPatch.Alternates":         `doc:"Replace those that are there."`,
	"PoolPatch.IdleReleaseSeconds": `nullable:"false"`,
	"PoolPatch.MaxLeaseSeconds":    `nullable:"false"`,
	"PoolPatch.CreateWindow":       `nullable:"false"`,
	"PoolPatch.IdleWarnAfter":      `nullable:"false"`,
	"PoolPatch.IdleReclaimAfter":   `nullable:"false"`,
	"Pool.IdleWarnAfter": `doc:"How long the GPUs of an allocation do nothing until its holder is warned, from 300; ` +
		`0: never. That they do nothing is what the daemons of its nodes tell; what nobody looks at is not idle."`,
	"Pool.IdleReclaimAfter": `doc:"How long they do nothing until the allocation ends: more than ` +
		`idle_warn_after_seconds, and never sooner after the warning than lies between the two; 0: never."`,
	"PoolPatch.NodeMemoryMiB": `nullable:"false"`,
	"PoolPatch.Force": `doc:"Split the pool although a workload has booked more than its new share, or make it ` +
		`smaller although promises lose their place: what is booked stays, and promises without a place are marked ` +
		`degraded."`,
	"Node.KeptReason": `doc:"Why an operator keeps it, as given; shown to operators."`,
	"Node.State": `enum:"requested,provisioning,booting,ready,draining,deprovisioning,gone,failed,lost,quarantined,` +
		`needs_attention"`,
	"Node.Failing": `doc:"Its provider keeps failing; left out while it does not, and in the answer to a ` +
		`change."`,
	"Node.PricePerNodeHour": `doc:"As it was when the node was asked for. Shown to operators."`,
	"Node.ExpiresAt":        `doc:"When its machine ends by itself unless it is renewed. Shown to operators."`,
	"PoolPatch.Labels":      `doc:"All labels that its nodes have then, beside their own."`,
	"PoolPatch.Taints":      `doc:"All taints that its nodes have then, beside their own."`,
	"NodePatch.Labels":      `doc:"All labels that it has then. Jobs ask for key=value, or for the key alone."`,
	"NodePatch.Taints":      `doc:"All taints that it has then: jobs that do not tolerate each of them start elsewhere."`,
	"Node.Kept":             `doc:"An operator keeps it for inspection, until it is resumed or drained."`,
	"Node.Resuming":         `doc:"An operator wants it back; it must pass its health gate first."`,
	"GPU.State": `doc:"Its state now: free, held by an allocation, kept for a booking that is due, on a node that ` +
		`is coming, or on a node that takes no work."`,
	"GPU.Health": `doc:"The health of its node; unknown while the node is coming or lost."`,
	"GPU.NodeState": `enum:"requested,provisioning,booting,ready,draining,deprovisioning,gone,failed,lost,` +
		`quarantined,needs_attention"`,
}
