package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/queue"
)

// userKey is who a user is.
type userKey struct{ tenant, user string }

// Scheduler is the state that cycles decide on. It is made by New or Restore, and is
// for one goroutine at a time.
type Scheduler struct {
	policy   Policy
	cluster  *placement.Cluster
	nodes    map[string]placement.Node
	piles    map[signature]*pile
	jobs     map[string]*waiter
	later    *queue.Queue   // of early
	early    map[string]Job // that wait for a time
	running  map[string]*Running
	promises map[string]*Promise
	accounts *accounts
	groups   map[string]groupUse // of those that are bounded
	entries  map[userKey]queue.Entries
	reserved reserved
	claims   map[string]claim // of what runs, those that claimed something
	booked   map[string]placement.Promised
}

// New returns a scheduler of these nodes, with no jobs.
func New(p Policy, nodes []placement.Node) (*Scheduler, error) {
	p = p.withDefaults()
	s := &Scheduler{policy: p, nodes: map[string]placement.Node{},
		piles: map[signature]*pile{}, jobs: map[string]*waiter{}, early: map[string]Job{},
		running: map[string]*Running{}, promises: map[string]*Promise{}, accounts: newAccounts(p),
		groups:  map[string]groupUse{},
		entries: map[userKey]queue.Entries{}, later: queue.New(math.MaxInt32), reserved: newReserved(),
		claims: map[string]claim{}, booked: map[string]placement.Promised{}}
	var err error
	if s.cluster, err = placement.New(p.Placement, nodes); err != nil {
		return nil, err
	}
	s.noteNodes(nodes)
	return s, nil
}

func (s *Scheduler) noteNodes(nodes []placement.Node) {
	for _, n := range nodes {
		s.nodes[n.ID] = n
		s.accounts.gpus += n.GPUs
	}
}

// AddNodes adds nodes that came. After an error none has been added.
func (s *Scheduler) AddNodes(nodes ...placement.Node) error {
	if err := s.cluster.Add(nodes...); err != nil {
		return err
	}
	s.noteNodes(nodes)
	return nil
}

// SetCondition notes that a node is drained, or how hot it is. What runs there goes on.
// It returns false for an unknown node.
func (s *Scheduler) SetCondition(node string, x placement.Condition, now time.Time) bool {
	if !s.cluster.SetCondition(node, x, now) {
		return false
	}
	n := s.nodes[node]
	n.Condition, _ = s.cluster.Condition(node)
	s.nodes[node] = n
	return true
}

// Book keeps GPUs for somebody who is no job, under an id that no job has: nothing starts there that may not be over
// before. It returns false, and books nothing, if a node is not known.
func (s *Scheduler) Book(p placement.Promised) bool {
	if !s.knows(p.Spots) {
		return false
	}
	s.cluster.Promise(p)
	s.booked[p.ID] = p
	return true
}

// Submit puts a job into the queue, or returns a *RefusedError and changes nothing. Until NotBefore it does not wait,
// however long before it was submitted.
func (s *Scheduler) Submit(j Job, now time.Time) error {
	refuse := func(reason Refused, opens time.Time) error {
		return &RefusedError{Job: j.ID, Reason: reason, Opens: opens}
	}
	switch {
	case !j.Request.Valid() || j.ID == "" || j.MaxRuntime < 0 || j.Predicted < 0:
		return refuse(RefusedInvalid, time.Time{})
	case s.knowsJob(j.ID):
		return refuse(RefusedDuplicate, time.Time{})
	case s.Waiting() >= s.policy.MostWaiting:
		return refuse(RefusedFull, time.Time{})
	}
	who := userKey{j.Tenant, j.User}
	entries, wait, opens := s.policy.Rate.Enter(s.entries[who], now)
	if wait != queue.WaitNone {
		return refuse(Refused(wait), opens)
	}
	if s.policy.Rate != (queue.Rate{}) {
		s.entries[who] = entries
	}
	if j.NotBefore.After(j.Eligible) {
		j.Eligible = j.NotBefore
	}
	s.waitFrom(s.completed(j), now)
	return nil
}

func (s *Scheduler) knowsJob(id string) bool {
	_, early := s.early[id]
	return early || s.jobs[id] != nil || s.running[id] != nil
}

// completed fills in what the job leaves to the policy.
func (s *Scheduler) completed(j Job) Job {
	if j.MaxRuntime == 0 {
		j.MaxRuntime = s.policy.MaxRuntime
	}
	if j.Predicted == 0 || j.Predicted > j.MaxRuntime {
		j.Predicted = j.MaxRuntime
	}
	return j
}

// Cancel takes a job out of the queue. It returns false when it does not wait.
func (s *Scheduler) Cancel(id string) bool {
	w := s.jobs[id]
	if w == nil {
		return s.cancelEarly(id)
	}
	s.withdraw(id)
	s.leave(w)
	return true
}

// Finish notes that a job no longer holds its GPUs, for whatever reason. It returns
// false when it holds none.
func (s *Scheduler) Finish(id string, now time.Time) bool {
	return s.stop(id, now) != nil
}

// Requeue notes that a job has left its GPUs and waits again: it keeps its place by since
// when it could run, and the work up to its last checkpoint. One that was told to leave has left
// once more; one that failed waits until notBefore, so that it does not take every turn.
// It returns false when it holds none.
func (s *Scheduler) Requeue(id string, now, notBefore time.Time) bool {
	r := s.stop(id, now)
	if r == nil {
		return false
	}
	j := r.Job
	j.Attained += r.kept(now)
	if r.Leaving {
		j.Preemptions++
	}
	j.NotBefore = notBefore
	s.waitFrom(j, now)
	return true
}

func (s *Scheduler) stop(id string, now time.Time) *Running {
	r := s.running[id]
	if r == nil {
		return nil
	}
	s.cluster.Release(id)
	delete(s.running, id)
	if s.claims[id].promise != nil {
		s.cluster.Withdraw(id)
	}
	delete(s.claims, id)
	u := s.accounts.userOf(userKey{r.Tenant, r.User})
	s.accounts.hold(u, -r.Request.GPUs(), now)
	s.countHeld(r.Group, -1)
	return r
}

// Waiting returns how many jobs wait, also those whose time has not come.
func (s *Scheduler) Waiting() int { return len(s.jobs) + len(s.early) }
