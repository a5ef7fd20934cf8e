package ledger

import (
	"slices"

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
	Via            string     // the door: api, worker, planner
}

// SystemActor is the installation itself acting through one of its parts.
func SystemActor(via string) Actor { return Actor{KeyID: "system", Role: Operator, Via: via} }

// Scope is what the actor may see.
func (a Actor) Scope() Scope {
	return Scope{OrganizationID: a.OrganizationID, All: a.Role == Operator}
}

// order of the roles, each including the ones before it.
var order = []Role{Viewer, Member, Admin, Operator}

// AtLeast reports whether the actor's role includes r.
func (a Actor) AtLeast(r Role) bool {
	return slices.Contains(order, a.Role) && slices.Index(order, a.Role) >= slices.Index(order, r)
}

// asker is for whom something is booked, and what caps hold for it.
type asker struct {
	keyID, userID string
	key, user     *quota.Caps // nil: none
}

func (a Actor) asker() asker {
	who := asker{keyID: a.KeyID, userID: a.UserID}
	if a.Kind == AgentKey || a.Caps != (quota.Caps{}) {
		who.key = &a.Caps
	}
	if a.UserID != "" && a.UserCaps != (quota.Caps{}) {
		who.user = &a.UserCaps
	}
	return who
}

// holder is the organization that the actor books for, or ErrDenied.
func (a Actor) holder() (string, error) {
	if a.OrganizationID == "" {
		return "", ErrDenied
	}
	return a.OrganizationID, nil
}
