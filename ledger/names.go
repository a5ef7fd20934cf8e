package ledger

import "strings"

// Noun is a kind of thing that people call by a name.
type Noun string

// The nouns. A person's name is the e-mail address, a node's the provider's id.
const (
	NounOrganization Noun = "organization"
	NounUser         Noun = "user"
	NounKey          Noun = "key"
	NounPool         Noun = "pool"
	NounSchedule     Noun = "schedule"
	NounNode         Noun = "node"
)

// CanonicalEmail writes an address as people are known by it: of the domain, case does not count (RFC 5321, section
// 2.3.11).
func CanonicalEmail(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	return address[:at] + strings.ToLower(address[at:])
}

// Named is something with its name. Names never change.
type Named struct {
	ID             string
	Name           string
	OrganizationID string // whose it is, an organization its own; empty: the installation's
}

// Missing is the name or id of something that there is not, or that the caller
// must not know of.
type Missing struct {
	Noun Noun
	Name string
}
