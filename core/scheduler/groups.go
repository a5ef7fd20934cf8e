package scheduler

// Group is jobs of which only so many may hold GPUs at once, such as those of an array.
type Group struct {
	Name string // empty: none
	Most int    // 0: no bound
}

// groupUse is how many jobs of a group hold GPUs, and to how many others a start is promised.
type groupUse struct{ held, promised int }

func (g Group) isBounded() bool { return g.Name != "" && g.Most > 0 }

// isFull reports whether a waiting job's group may start no more. As with tenants, a promise has its place within the
// bound from when it is made.
func (s *Scheduler) isFull(w *waiter) bool {
	if !w.Group.isBounded() {
		return false
	}
	use := s.groups[w.Group.Name]
	if w.promise != nil {
		use.promised--
	}
	return use.held+use.promised >= w.Group.Most
}

// countHeld counts jobs of a group that take or leave their GPUs.
func (s *Scheduler) countHeld(g Group, more int) {
	if g.isBounded() {
		use := s.groups[g.Name]
		use.held += more
		s.setUse(g, use)
	}
}

// countPromised counts promises to jobs of a group that are made or end.
func (s *Scheduler) countPromised(g Group, more int) {
	if g.isBounded() {
		use := s.groups[g.Name]
		use.promised += more
		s.setUse(g, use)
	}
}

func (s *Scheduler) setUse(g Group, use groupUse) {
	if use == (groupUse{}) {
		delete(s.groups, g.Name)
		return
	}
	s.groups[g.Name] = use
}

// Within parts jobs that wait, in the order of a cycle, into those that their groups let start, were there GPUs for
// all, and the others.
func (s *Scheduler) Within(order []string) (may, mayNot []string) {
	counted := map[string]int{}
	for _, id := range order {
		w := s.jobs[id]
		if w == nil {
			continue
		}
		if g := w.Group; g.isBounded() {
			if s.groups[g.Name].held+counted[g.Name] >= g.Most {
				mayNot = append(mayNot, id)
				continue
			}
			counted[g.Name]++
		}
		may = append(may, id)
	}
	return may, mayNot
}
