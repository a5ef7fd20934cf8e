package contract

import "time"

// Explanation is why something is as it is, what stands in its way, and what
// happens next and when.
type Explanation struct {
	Subject   string        `json:"subject,omitempty" doc:"Empty for a request that was only asked about."`
	Kind      string        `json:"kind" enum:"reservation,allocation,job,node,pool,schedule,request"`
	State     string        `json:"state"`
	Reason    string        `json:"reason,omitempty"`
	Summary   string        `json:"summary" doc:"One sentence for people."`
	PoolID    string        `json:"pool_id,omitempty"`
	PoolName  string        `json:"pool_name,omitempty"`
	Since     time.Time     `json:"since,omitzero" doc:"When it entered this state, or was requested."`
	Degraded  bool          `json:"degraded"`
	Blockers  []BlockedBy   `json:"blockers" nullable:"false" doc:"Everything that must clear, not only the first."`
	Offers    []Offer       `json:"offers" nullable:"false" doc:"What would be accepted now."`
	Wait      *WaitEstimate `json:"wait,omitempty" doc:"Present while it waits, or would."`
	Waits     []Waits       `json:"waits,omitempty"`
	Next      []NextStep    `json:"next" nullable:"false" doc:"In the order of their times."`
	Decisions []Decision    `json:"decisions" nullable:"false" doc:"Newest first, without their records."`
	Displaced []string      `json:"displaced" nullable:"false"`
	Others    int           `json:"displaced_others" doc:"How many reservations of others it would push out."`
	At        time.Time     `json:"at" doc:"When this was true."`
}

// BlockedBy is one thing that stands in the way.
type BlockedBy struct {
	Code     string       `json:"code"`
	Message  string       `json:"message"`
	Evidence []string     `json:"evidence" nullable:"false" doc:"What was looked at: ids and numbers."`
	Unit     string       `json:"unit,omitempty" doc:"What limit and asked count."`
	Limit    int64        `json:"limit"`
	Asked    int64        `json:"asked"`
	Fix      *Fix         `json:"fix,omitempty"`
	ClearsAt *InstantBand `json:"clears_at,omitempty" doc:"Absent when time alone does not clear it."`
}

// InstantBand says when, never as a single number: the chance that it is earlier
// is 10, 50 and 90 percent.
type InstantBand struct {
	P10 time.Time `json:"p10"`
	P50 time.Time `json:"p50"`
	P90 time.Time `json:"p90"`
}

// WaitEstimate is how much longer something waits, from now on.
type WaitEstimate struct {
	P10Seconds float64 `json:"p10_seconds"`
	P50Seconds float64 `json:"p50_seconds"`
	P90Seconds float64 `json:"p90_seconds"`
	Basis      string  `json:"basis" doc:"What it was estimated from."`
	Samples    int     `json:"samples" doc:"How many observations are behind it; 0 means a prior belief."`
}

// NextStep is something that happens unless something else does before.
type NextStep struct {
	Code    string    `json:"code" example:"warm"`
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// ExplainRequest asks what would become of a request. Give exactly one.
type ExplainRequest struct {
	Reservation *ReservationCreate `json:"reservation,omitempty" nullable:"false"`
	Allocation  *AllocationCreate  `json:"allocation,omitempty" nullable:"false"`
}

// explainTags are the rests of tags that are too long for their lines.
var explainTags = tags{
	"Explanation.Waits": `doc:"Of an observed pool: the starts of the last seven days that waited, and what waits now, ` +
		`by what for."`,
	"Explanation.State": `doc:"For a request: accepted, waits or refused. For a schedule: active, paused or ended. ` +
		`For a pool: its use."`,
	"Explanation.Displaced": `doc:"Reservations that a request would push out; those of others are only counted."`,
}
