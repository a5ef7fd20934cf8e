package contract

// The enums of the wire. A test of the server compares them, and the enum tags
// of the fields that use them, with the tables in core.
var (
	AllocationStates  = []string{"pending", "active", "releasing", "released", "failed", "expired", "cancelled"}
	ReservationStates = []string{"booked", "waitlisted", "warming", "ready", "claimed",
		"cancelled", "expired", "failed"}
	NodeStates = []string{"requested", "provisioning", "booting", "ready", "draining", "deprovisioning", "gone",
		"failed",
		"lost", "quarantined", "needs_attention"}
	Classes = []string{"guaranteed", "speculative"}
	Origins = []string{"person", "schedule", "agent"}
	Roles   = []string{"viewer", "member", "admin", "operator"}
	// ReasonCodes are why an agent expects a need. It cannot say it in words: a
	// sentence could quote what the agent has read.
	ReasonCodes = []string{"recurring_pattern", "recent_rate", "queue_backlog", "announced_work", "scheduled_work",
		"other"}
	// ForecastSources are what may have made a forecast.
	ForecastSources = []string{"statistics", "llm", "extractor", "rule", "person"}
	ForecastStates  = []string{"open", "closed"}
)

// The kinds of key.
const (
	KindPerson = "person"
	KindAgent  = "agent"
)

// The classes of a reservation.
const (
	ClassGuaranteed  = "guaranteed"
	ClassSpeculative = "speculative"
)

// What a schedule does with a local time that does not exist.
const (
	DSTShift = "shift"
	DSTSkip  = "skip"
)
