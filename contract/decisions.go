package contract

import (
	"encoding/json"
	"time"
)

// Decision is why something happened: what was decided, about what, and a record
// from which it can be computed again.
type Decision struct {
	ID               string          `json:"id" example:"dec_1042"`
	Time             time.Time       `json:"time"`
	Kind             string          `json:"kind"`
	Event            string          `json:"event" example:"reservation.booked"`
	Subject          string          `json:"subject"`
	OrganizationID   string          `json:"organization_id,omitempty"`
	OrganizationName string          `json:"organization_name,omitempty"`
	PoolID           string          `json:"pool_id,omitempty"`
	PoolName         string          `json:"pool_name,omitempty"`
	Actor            string          `json:"actor,omitempty" doc:"Id of a key, or a part of the system."`
	ActorName        string          `json:"actor_name,omitempty" doc:"Its name, if the reader may see it."`
	Reason           string          `json:"reason,omitempty"`
	Message          string          `json:"message,omitempty"`
	Engine           string          `json:"engine,omitempty" enum:"admission,plan"`
	Record           json.RawMessage `json:"record,omitempty"`
	Also             []Blocker       `json:"also,omitempty" doc:"Why it was refused after the engine had accepted it."`
	Redacted         bool            `json:"redacted,omitempty"`
}

// DecisionKinds lists the kinds of decision.
var DecisionKinds = []string{"admission", "waitlist", "refusal", "promotion", "displacement", "prewarm", "reclaim",
	"placement"}

// decisionsTags are the rests of tags that are too long for their lines.
var decisionsTags = tags{
	"Decision.Kind":    `enum:"admission,waitlist,refusal,promotion,displacement,prewarm,reclaim,placement"`,
	"Decision.Event":   `doc:"The type of the event that it left."`,
	"Decision.Subject": `doc:"What it is about; of a refusal an id of its own, since nothing was made."`,
	"Decision.Engine":  `doc:"What computes the record again."`,
	"Decision.Record": `doc:"Facts and outcome, in the form that a replay reproduces byte for byte; only when one ` +
		`decision is read."`,
	"Decision.Redacted": `doc:"The record holds the work of others, which this key may not see, and was left out."`,
}
