package contract

import "time"

// ProblemContentType is the media type of a Problem.
const ProblemContentType = "application/problem+json"

// ProblemBase is what every problem's type begins with; the code follows.
const ProblemBase = "https://forewarm.dev/problems/"

// Problem is why a request failed (RFC 9457). Detail is safe to show to people,
// and every number in it is also a field.
type Problem struct {
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Status     int             `json:"status"`
	Detail     string          `json:"detail,omitempty"`
	Instance   string          `json:"instance,omitempty"`
	Code       string          `json:"code" doc:"What to choose by; listed in the documentation."`
	RequestID  string          `json:"request_id,omitempty"`
	Errors     []FieldError    `json:"errors,omitempty"`
	Retryable  bool            `json:"retryable" doc:"Whether the same request may succeed later."`
	RetryAfter int             `json:"retry_after_seconds,omitempty"`
	Fixes      []Fix           `json:"fixes,omitempty"`
	DecisionID string          `json:"decision_id,omitempty"`
	Blockers   []Blocker       `json:"blockers,omitempty" doc:"Every blocker, not only the first."`
	AtRisk     []PromiseAtRisk `json:"promises_at_risk,omitempty"`
	Offers     []Offer         `json:"offers,omitempty" doc:"What would be accepted now."`
}

// FieldError is one wrong value. Its code is the kind of rule that it breaks:
// minimum, maximum, min-length, max-length, min-items, max-items, pattern, format,
// type, enum, required, unknown-field, unknown, invalid and others. The last one of a
// long list has the code more and no pointer: it says how many others are wrong.
type FieldError struct {
	Pointer string   `json:"pointer" doc:"JSON pointer into the body, or the name of a parameter or header."`
	Code    string   `json:"code" doc:"The kind of rule that it breaks, such as maximum, enum or required."`
	Message string   `json:"message"`
	Limit   *float64 `json:"limit,omitempty" doc:"The minimum or maximum of the value, its length or its items."`
	Unit    string   `json:"unit,omitempty" doc:"What limit counts: seconds, mib, days, hours, characters or items."`
	Allowed []string `json:"allowed,omitempty" doc:"All that would do."`
}

// Fix is something to try next.
type Fix struct {
	Label   string         `json:"label"`
	Command string         `json:"command,omitempty" doc:"A command that can be run as it is."`
	Set     map[string]any `json:"set,omitempty" doc:"Fields or parameters to set when the request is repeated."`
	Request bool           `json:"request,omitempty"`
}

// What FieldError.Limit counts.
const (
	UnitSeconds    = "seconds"
	UnitMiB        = "mib"
	UnitDays       = "days"
	UnitHours      = "hours"
	UnitCharacters = "characters"
	UnitItems      = "items"
)

// Blocker is one reason for a refusal, with its numbers.
type Blocker struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Unit    string `json:"unit,omitempty" doc:"What limit and asked count."`
	Limit   int64  `json:"limit"`
	Asked   int64  `json:"asked"`
}

// Offer is a request that would be accepted now; of a claim, from start on.
type Offer struct {
	PoolID      string    `json:"pool_id,omitempty"`
	PoolName    string    `json:"pool_name,omitempty"`
	GPUs        int       `json:"gpus"`
	Nodes       int       `json:"nodes"`
	GPUsPerNode int       `json:"gpus_per_node"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	Cost        Money     `json:"cost" doc:"Of the whole time, at the pool's price."`
	// ReservationID makes it an offer to claim that reservation.
	ReservationID string `json:"reservation_id,omitempty"`
}

// problemTags are the rests of tags that are too long for their lines.
var problemTags = tags{
	"Problem.DecisionID": `doc:"For a refusal: the id under which GET /v1/decisions/ID explains it."`,
	"Problem.AtRisk":     `doc:"Up to 20 of the promises that the change would break."`,
	"FieldError.Message": `doc:"The rule, to be read after the field's name; of unknown a sentence of its own."`,
	"Fix.Request": `doc:"It is about how a request is written, which does not help people whose program writes ` +
		`it."`,
	"Offer.PoolID":        `doc:"Where: the pool that was asked for, or another with GPUs of the same model."`,
	"Offer.GPUsPerNode":   `doc:"The last node has the rest of gpus; the three numbers ask for just this."`,
	"Offer.ReservationID": `doc:"Claim this reservation, at start or later, instead of booking anew."`,
}
