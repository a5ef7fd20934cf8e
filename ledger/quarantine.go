package ledger

// Reasons of an operator's quarantine.
const (
	ReasonInspection = "inspection" // an operator keeps the node
	ReasonForgotten  = "forgotten"  // for so long that somebody is told
)
