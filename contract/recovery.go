package contract

import "time"

// RecoveryState is what only reconciles, and what was found that no node stands
// for.
type RecoveryState struct {
	Recovering bool             `json:"recovering"`
	Pools      []RecoveringPool `json:"pools" nullable:"false"`
	Orphans    []OrphanMachine  `json:"orphans" nullable:"false"`
	Journal    *JournalGap      `json:"journal,omitempty"`
}

// JournalGap says that seals that a server or worker has seen are not in the
// journal: it was written anew or cut off, or an older copy restored.
type JournalGap struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// RecoveringPool is a pool in which nothing is made, ended, promised or handed out.
type RecoveringPool struct {
	PoolID string    `json:"pool_id"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// OrphanMachine is a machine with this installation's tag that no node stands
// for.
type OrphanMachine struct {
	Machine          string    `json:"machine" doc:"The provider's id."`
	Provisioner      string    `json:"provisioner"`
	NodeID           string    `json:"node_id,omitempty" doc:"From its tag."`
	InstanceType     string    `json:"instance_type,omitempty"`
	PricePerNodeHour Money     `json:"price_per_node_hour"`
	BilledFrom       time.Time `json:"billed_from"`
}

// RecoveryBegin has every pool only reconcile.
type RecoveryBegin struct {
	Reason string `json:"reason" minLength:"1" maxLength:"200"`
}

// recoveryTags are the rests of tags that are too long for their lines.
var recoveryTags = tags{
	"RecoveryState.Orphans": `doc:"Machines that belong to no node and are billed: they are ended once recovery ` +
		`is confirmed."`,
	"RecoveryState.Journal": `doc:"What is missing from the journal's seals. Processes that miss it seal nothing ` +
		`until an operator accepts the journal."`,
}
