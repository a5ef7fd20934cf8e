package capacity

// Holders says whose the work is that runs in an observed pool: organizations by the
// names that the cluster knows.
type Holders struct {
	Rules []HolderRule
	// Default is the organization of work that no rule names; empty: such work is of
	// no organization, and is counted in the pool alone.
	Default string
}

// HolderRule gives the work of a name to an organization. What is empty does not
// bind; one field at least is set.
type HolderRule struct {
	Account, User, Namespace, Queue string
	OrganizationID                  string
}

// WorkOwner is who runs a piece of work, by the cluster's own names. A cluster knows
// some of them and leaves the others empty.
type WorkOwner struct {
	Account, User, Namespace, Queue string
}

// Find returns the organization of the first rule that fits, else the default.
func (h Holders) Find(o WorkOwner) string {
	for _, r := range h.Rules {
		if r.fits(o) {
			return r.OrganizationID
		}
	}
	return h.Default
}

func (r HolderRule) fits(o WorkOwner) bool {
	fits := func(want, is string) bool { return want == "" || want == is }
	return fits(r.Account, o.Account) && fits(r.User, o.User) && fits(r.Namespace, o.Namespace) &&
		fits(r.Queue, o.Queue)
}

// ShapeOf lays GPUs out on nodes of the pool. In an observed pool they are whole nodes:
// a promise there is of nodes, not of devices. It returns false for what no nodes of
// the pool can be.
func (p Pool) ShapeOf(l Layout, gpus int) (Shape, bool) {
	shape, ok := l.Shape(gpus, p.PerNode)
	return p.Whole(shape), ok
}

// Whole returns the shape that a promise of it takes in the pool.
func (p Pool) Whole(s Shape) Shape {
	if p.Observed {
		return Shape{Nodes: s.Nodes, PerNode: p.PerNode}
	}
	return s
}
