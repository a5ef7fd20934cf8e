package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// TenantUsage is what a tenant has had.
type TenantUsage struct {
	Tenant string
	Usage  fairshare.Usage
}

// UserUsage is what a user of a tenant has had, which is also in the tenant's.
type UserUsage struct {
	Tenant, User string
	Usage        fairshare.Usage
}

// UserEntries is what a user has submitted.
type UserEntries struct {
	Tenant, User string
	Entries      queue.Entries
}

// Snapshot is the whole state, as values: what a decision was made on, and what a
// scheduler begins with after a restart. The order of its lists says nothing.
type Snapshot struct {
	Nodes    []placement.Node
	Waiting  []Job
	Early    []Job // that wait for a time
	Running  []Running
	Promises []Promise
	Reserved []Reserved
	Booked   []placement.Promised // kept for those who are no jobs
	Tenants  []TenantUsage
	Users    []UserUsage
	Entries  []UserEntries
}

// Snapshot returns the state, each list in the order of ids.
func (s *Scheduler) Snapshot() Snapshot {
	var out Snapshot
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[id]
		n.Condition, _ = s.cluster.Condition(id)
		out.Nodes = append(out.Nodes, n)
	}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		out.Waiting = append(out.Waiting, s.jobs[id].Job)
	}
	for _, id := range slices.Sorted(maps.Keys(s.early)) {
		out.Early = append(out.Early, s.early[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.running)) {
		out.Running = append(out.Running, *s.running[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.promises)) {
		out.Promises = append(out.Promises, *s.promises[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.reserved.byID)) {
		out.Reserved = append(out.Reserved, s.reserved.byID[id].clone())
	}
	for _, id := range slices.Sorted(maps.Keys(s.booked)) {
		out.Booked = append(out.Booked, s.booked[id])
	}
	for _, name := range slices.Sorted(maps.Keys(s.accounts.tenants)) {
		out.Tenants = append(out.Tenants, TenantUsage{name, s.accounts.tenants[name].usage})
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.accounts.users), compareUsers) {
		out.Users = append(out.Users, UserUsage{k.tenant, k.user, s.accounts.users[k].usage})
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.entries), compareUsers) {
		out.Entries = append(out.Entries, UserEntries{k.tenant, k.user, s.entries[k]})
	}
	return out
}

func compareUsers(a, b userKey) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.user, b.user))
}

// Restore returns a scheduler of that state. It refuses one that cannot be: a GPU in two
// hands, a job twice, an unknown node, a promise to nobody.
func Restore(p Policy, from Snapshot) (*Scheduler, error) {
	s, err := New(p, from.Nodes)
	if err != nil {
		return nil, err
	}
	for _, t := range from.Tenants {
		s.accounts.tenantOf(t.Tenant).usage = t.Usage
	}
	for _, u := range from.Users {
		s.accounts.userOf(userKey{u.Tenant, u.User}).usage = u.Usage
	}
	for _, u := range from.Entries {
		s.entries[userKey{u.Tenant, u.User}] = u.Entries
	}
	s.jobs = make(map[string]*waiter, len(from.Waiting))
	taken := devices{whole: map[string]uint64{}, parts: map[string]uint64{}}
	for _, r := range from.Running {
		if err := s.restoreRunning(r, taken); err != nil {
			return nil, err
		}
	}
	waiters := make([]waiter, len(from.Waiting))
	for i, j := range from.Waiting {
		if err := s.checkNew(j); err != nil {
			return nil, err
		}
		waiters[i].Job = s.completed(j)
		s.wait(&waiters[i])
	}
	for _, j := range from.Early {
		if err := s.checkNew(j); err != nil {
			return nil, err
		}
		s.waitFrom(s.completed(j), time.Time{})
	}
	for _, promised := range from.Promises {
		if s.jobs[promised.ID] == nil || !s.knows(promised.Spots) {
			return nil, fmt.Errorf("restoring the promise to %q: the job does not wait, or a node is not known",
				promised.ID)
		}
		s.keep(&promised)
	}
	s.Reserve(from.Reserved...)
	for _, booked := range from.Booked {
		if s.knowsJob(booked.ID) || !s.Book(booked) {
			return nil, fmt.Errorf("restoring what is booked as %q: a job has that id, or a node is not known", booked.ID)
		}
	}
	return s, nil
}

// checkNew refuses a job that cannot be, or is there already.
func (s *Scheduler) checkNew(j Job) error {
	if s.knowsJob(j.ID) || !j.Request.Valid() || j.ID == "" {
		return fmt.Errorf("restoring job %q: it is there twice, or its request is not valid", j.ID)
	}
	return nil
}

// devices are those of each node that somebody holds alone, and those that are shared.
type devices struct{ whole, parts map[string]uint64 }

// take notes who has a spot. It returns false if somebody else has it.
func (d devices) take(spot placement.Spot, isPart bool) bool {
	if d.whole[spot.Node]&spot.Devices != 0 || !isPart && d.parts[spot.Node]&spot.Devices != 0 {
		return false
	}
	if isPart {
		d.parts[spot.Node] |= spot.Devices
	} else {
		d.whole[spot.Node] |= spot.Devices
	}
	return true
}

// restoreRunning puts a running job on its GPUs.
func (s *Scheduler) restoreRunning(r Running, taken devices) error {
	if s.running[r.ID] != nil || !r.Request.Valid() || !s.knows(r.Spots) {
		return fmt.Errorf("restoring job %q: it runs twice, on unknown nodes, or its request is not valid", r.ID)
	}
	isPart := r.Request.Part != placement.Part{}
	for _, spot := range r.Spots {
		outside := bits.Len64(spot.Devices) > s.nodes[spot.Node].GPUs
		if outside || bits.OnesCount64(spot.Devices) != spot.GPUs || isPart && !s.nodes[spot.Node].Shared {
			return fmt.Errorf("restoring job %q: node %q has no such GPUs", r.ID, spot.Node)
		}
		if !taken.take(spot, isPart) {
			return fmt.Errorf("restoring job %q: a GPU of node %q is in two hands", r.ID, spot.Node)
		}
	}
	s.cluster.Restore(placement.Holding{ID: r.ID, Spots: r.Spots, Part: r.Request.Part, Until: r.Until,
		Company: r.Request.Company})
	s.running[r.ID] = &r
	u := s.accounts.userOf(userKey{r.Tenant, r.User})
	u.held += r.Request.GPUs()
	u.tenant.held += r.Request.GPUs()
	s.countHeld(r.Group, 1)
	return nil
}

func (s *Scheduler) knows(spots placement.Placement) bool {
	return !slices.ContainsFunc(spots, func(spot placement.Spot) bool {
		_, known := s.nodes[spot.Node]
		return !known
	})
}
