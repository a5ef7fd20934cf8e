package ledger

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/quota"
)

// Actor is who asks for a verb, as authentication proved it. The zero Actor may
// do and see nothing.
type Actor struct {
	KeyID          string
	Kind           KeyKind
	OrganizationID string
	UserID         string
	Role           Role
	Caps           quota.Caps // of the key; see Key.Caps
	UserCaps       quota.Caps // of the person; zero: none
	Makers         []Bound    // caps of those that the key rests on; see Credential
	ExpiresAt      time.Time  // when the key, or one that it rests on, expires; zero: never
	Via            string     // the door: api, worker, planner, node
	NodeID         string     // of the daemon of a node: whose
}

// systemKey is what the installation itself signs with.
const systemKey = "system"

// SystemActor is the installation itself acting through one of its parts.
func SystemActor(via string) Actor { return Actor{KeyID: systemKey, Role: Operator, Via: via} }

// IsSystem reports whether the installation itself acts.
func (a Actor) IsSystem() bool { return a.KeyID == systemKey }

// Scope is what the actor may see.
func (a Actor) Scope() Scope {
	return Scope{OrganizationID: a.OrganizationID, All: a.Role == Operator}
}

// Order of the roles, each including the ones before it.
var Order = []Role{Viewer, Member, Admin, Operator}

// AtLeast reports whether the actor's role includes r.
func (a Actor) AtLeast(r Role) bool { return a.Role.Includes(r) }

// Includes reports whether r is o or above it. What is no role includes nothing.
func (r Role) Includes(o Role) bool {
	return slices.Contains(Order, r) && slices.Index(Order, r) >= slices.Index(Order, o)
}

// Asker is for whom something is booked, and what caps hold for it.
type Asker struct {
	KeyID, UserID string
	Key, User     *quota.Caps // nil: none
	MayMake       bool        // others may have been made with the key
	Makers        []Bound
}

// AskerFor is for whom the actor books, with the caps that hold for them.
func (a Actor) AskerFor() Asker {
	who := Asker{KeyID: a.KeyID, UserID: a.UserID, MayMake: a.Kind == PersonKey, Makers: a.Makers}
	if a.Kind == AgentKey || a.Caps != (quota.Caps{}) {
		who.Key = &a.Caps
	}
	if a.UserID != "" && a.UserCaps != (quota.Caps{}) {
		who.User = &a.UserCaps
	}
	return who
}

// BookingOrganization is the organization that the actor books for, or ErrDenied.
func (a Actor) BookingOrganization() (string, error) {
	if a.OrganizationID == "" {
		return "", ErrDenied
	}
	return a.OrganizationID, nil
}
