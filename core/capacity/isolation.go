package capacity

import "slices"

// Isolation is how well a node keeps the holders of its GPUs apart.
type Isolation string

// The isolations, the weakest first.
const (
	IsolationEnvironment Isolation = "environment" // all have one user, and are told their GPUs
	IsolationUser        Isolation = "user"        // each has a user of its own
	IsolationDevices     Isolation = "devices"     // and can open no GPU but its own
)

var isolations = []Isolation{IsolationEnvironment, IsolationUser, IsolationDevices}

// Valid reports whether it is one of them.
func (i Isolation) Valid() bool { return slices.Contains(isolations, i) }

// Mixes reports whether a node is known not to keep holders apart as well as asked for: work of two organizations must
// not be there at once.
func (i Isolation) Mixes(least Isolation) bool { return i != "" && !i.AtLeast(least) }

// AtLeast reports whether holders are kept apart as well as asked for. Empty asks for
// IsolationUser; what is none of the isolations keeps nobody apart.
func (i Isolation) AtLeast(least Isolation) bool {
	if least == "" {
		least = IsolationUser
	}
	return i.Valid() && slices.Index(isolations, i) >= slices.Index(isolations, least)
}
