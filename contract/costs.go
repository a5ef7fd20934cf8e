package contract

import "time"

// CostReport divides what machines cost in a period. Every GPU-second is in one
// line, so the lines add up to the providers' bill. A tenant sees its own.
type CostReport struct {
	From     time.Time  `json:"from"`
	To       time.Time  `json:"to"`
	Total    Money      `json:"total"`
	Tenants  Money      `json:"tenants" doc:"While somebody held the GPUs."`
	WarmPool *Money     `json:"warm_pool,omitempty"`
	Orphans  *Money     `json:"orphans,omitempty" doc:"Machines that belonged to no node."`
	Items    []CostLine `json:"items" nullable:"false"`
}

// CostLine is a sum of charges over machines of one pool from one provisioner.
type CostLine struct {
	PoolID           string  `json:"pool_id,omitempty" doc:"With by=pool; absent for orphans."`
	PoolName         string  `json:"pool_name,omitempty"`
	Provisioner      string  `json:"provisioner,omitempty" doc:"With by=provisioner."`
	Payer            string  `json:"payer" enum:"tenant,warm_pool,orphan"`
	OrganizationID   string  `json:"organization_id,omitempty" doc:"Of a tenant."`
	OrganizationName string  `json:"organization_name,omitempty"`
	Cause            string  `json:"cause,omitempty"`
	Machines         int     `json:"machines" doc:"That the charges are of."`
	GPUHours         float64 `json:"gpu_hours"`
	Amount           Money   `json:"amount"`
	// Activity is what the GPUs did while a tenant held them: gpu_hours and amount, divided.
	Activity *Activity `json:"activity,omitempty" doc:"Of a tenant: gpu_hours and amount, by what the GPUs did."`
}

// SourceState is what is known of one place where a pool's machines can be had.
type SourceState struct {
	Provisioner      string    `json:"provisioner"`
	Region           string    `json:"region,omitempty"`
	InstanceType     string    `json:"instance_type,omitempty"`
	PricePerNodeHour Money     `json:"price_per_node_hour"`
	BootP50Seconds   float64   `json:"boot_p50_seconds"`
	BootP95Seconds   float64   `json:"boot_p95_seconds"`
	BootSamples      int       `json:"boot_samples"`
	BlockedUntil     time.Time `json:"blocked_until,omitzero" doc:"It had nothing; it is not asked before."`
	Stopped          string    `json:"stopped,omitempty"`
}

// PoolSource is another place where a pool's machines can be had.
type PoolSource struct {
	Provisioner       string  `json:"provisioner" minLength:"1" maxLength:"63"`
	Region            string  `json:"region,omitempty" maxLength:"63"`
	InstanceType      string  `json:"instance_type,omitempty" maxLength:"63"`
	PricePerNodeHour  Money   `json:"price_per_node_hour"`
	MinBillingSeconds int64   `json:"min_billing_seconds,omitempty" minimum:"0" maximum:"86400"`
	BootP50Seconds    float64 `json:"boot_p50_seconds,omitempty" exclusiveMinimum:"0" maximum:"86400" default:"120"`
	BootP95Seconds    float64 `json:"boot_p95_seconds,omitempty" exclusiveMinimum:"0" maximum:"86400" default:"300"`
}

// costsTags are the rests of tags that are too long for their lines.
var costsTags = tags{
	"CostReport.WarmPool": `doc:"While nobody did: the price of being ready, by cause. Absent, like orphans, in the ` +
		`report of one organization."`,
	"CostLine.Cause": `enum:"boot,failed_boot,early_warm,late_release,unused,no_show,quarantined,removal,` +
		`min_billing" doc:"Of the warm pool."`,
	"SourceState.BootSamples": `doc:"Real boots behind the two numbers; with few, the prior counts."`,
	"SourceState.Stopped": `doc:"The fault that two machines in a row showed at the health gate; it is not asked ` +
		`until the pool is edited."`,
	"PoolSource.MinBillingSeconds": `doc:"The shortest time that is charged."`,
	"PoolSource.BootP50Seconds":    `doc:"What is believed before any boot was measured."`,
}
