package ledger

import (
	"time"
)

// Pause stops pre-warming for speculative reservations of an organization, or for the whole
// installation: new ones are refused and those that are booked
// are not warmed. Promises are kept as before.
type Pause struct {
	OrganizationID string // empty: the installation
	Reason         string // why, in the words of who paused
	By             string // key id
	At             time.Time
	Until          time.Time // it resumes by itself then; zero: when somebody resumes it
}

// Installation is what a pause of everybody is called where an organization is
// named.
const Installation = "installation"
