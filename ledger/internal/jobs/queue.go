package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// queue is what the scheduler decides on: a pool and its jobs, as they were at one moment.
type queue struct {
	now      time.Time
	rules    ledger.Scheduling
	weights  map[string]int     // of those whose jobs wait
	most     map[string]int     // GPUs that these may hold at once; who is not here may hold any number
	held     map[share]int      // GPUs that they hold
	bounded  bool               // the scheduler is to know of that; else admission alone does, which knows all of it
	holders  map[string]job.Job // by the allocation that they have
	pool     ledger.PoolState
	pools    map[string]ledger.PoolState     // whose nodes decide whether jobs may start; others are not looked at
	seen     map[string]map[string]time.Time // by pool, when the daemons of its nodes said something last
	divides  bool                            // nodes of the pool are for one organization at a time, and several are there
	resides  txn.Residents                   // for which these are
	left     map[string]string               // whose work may be left of on such nodes, by the allocation that it was of
	usable   map[string]usable               // by what a job says of nodes
	jobs     map[string]job.Job              // that may start now
	order    []string                        // of those, by id
	expected map[string]runtimes.Prediction  // for how long an attempt runs of those that wait or may leave, by id
	typical  time.Duration                   // of what is expected, the median; 0: of nobody anything is
	ends     map[string]time.Time            // when those are predicted to have ended that may leave, by id
	reserved []string                        // of those, by id, whose reservations have begun
	named    map[string]bool                 // reservations in which jobs are to run that name them
	later    []ledger.QueuedJob              // that may not yet
	opens    time.Time                       // when the first of those may; zero: nobody knows
	eligible []job.Job                       // whose wait begins now: what they waited for has come
	hopeless []failure
	late     []job.Job               // that have their GPUs, and that no daemon has started in time
	unheard  []job.Job               // that have their GPUs where a daemon is silent that was never told of them
	turns    ledger.JobTurns         // whose it was next, when that was decided last
	others   map[string]job.Progress // of the jobs that any depends on
	coldLast bool                    // slots without a node come after those that have one
	overdue  []job.Job               // that were told to end, and should have by now
	foretell time.Time               // when the starts of jobs are to be predicted that came since; zero: of none
}

// isEmpty reports whether nobody waits, for anything.
func (q queue) isEmpty() bool { return len(q.jobs) == 0 && len(q.later) == 0 }

// readQueue reads the pool and its jobs. Of those that wait for other jobs it finds which may start
// by now, and which never can. They come without their commands.
func (l Jobs) readQueue(r ledger.Reader, poolID string) (queue, error) {
	q := queue{now: r.Now(), usable: map[string]usable{}, jobs: map[string]job.Job{},
		holders: map[string]job.Job{}, expected: map[string]runtimes.Prediction{},
		ends: map[string]time.Time{}}
	live, err := l.LiveJobs.LiveJobs(r, poolID)
	if err != nil {
		return q, err
	}
	if len(live) == 0 {
		return q, nil
	}
	if q.pool, err = r.LiveState(poolID); err != nil {
		return q, err
	}
	if q.turns, err = r.JobTurns(poolID); err != nil {
		return q, err
	}
	q.pools = map[string]ledger.PoolState{poolID: q.pool}
	if q.seen, err = readSeen(r, q.pools); err != nil {
		return q, err
	}
	if err := readDivision(r, &q, live); err != nil {
		return q, err
	}
	q.rules = l.Config.Scheduling.Now().Of(q.pool.Pool.Name)
	q.holders, q.named = attemptsOf(live), namedBy(live)
	q.late, q.unheard = q.notStarted()
	for _, j := range live {
		if j.Ending.IsOverdue(q.now) {
			q.overdue = append(q.overdue, j)
		}
	}
	all := waiting(live)
	others, err := readProgress(r, dependenciesOf(all))
	if err != nil {
		return q, err
	}
	q.others = others
	for _, j := range all {
		q.add(j, others)
	}
	if err := q.expect(r, l.LiveJobs, all); err != nil {
		return q, err
	}
	return q, q.readWeights(r)
}

// readWeights reads what shares of use are fair of those whose jobs wait, and what they may hold.
func (q *queue) readWeights(r ledger.Reader) error {
	q.weights, q.most, q.held = map[string]int{}, map[string]int{}, countHeld(q.pools)
	for _, id := range q.order {
		tenant := q.jobs[id].OrganizationID
		if _, known := q.weights[tenant]; known {
			continue
		}
		o, err := r.Organization(ledger.Scope{All: true}, tenant)
		if err != nil {
			return err
		}
		q.weights[tenant] = o.Limits.Weight
		if most, is := o.Limits.MostGPUs(); is && most > 0 {
			q.most[tenant] = most
		}
	}
	return nil
}

func dependenciesOf(all []job.Job) []string {
	seen := map[string]bool{}
	var out []string
	for _, j := range all {
		for _, d := range j.Dependencies {
			if !seen[d.JobID] {
				seen[d.JobID] = true
				out = append(out, d.JobID)
			}
		}
	}
	return out
}

func (q *queue) add(j job.Job, others map[string]job.Progress) {
	_, reserved := q.reservationOf(j)
	verdict, on := j.JudgeAll(others)
	if verdict == job.Met && !j.IsEligible() {
		j = j.LetWait(q.now)
		q.eligible = append(q.eligible, j)
	}
	switch {
	case inReservation(j) && !reserved && q.pool.Pool.ID != "":
		q.hopeless = append(q.hopeless, reservationOver(j))
	case verdict == job.Never:
		q.hopeless = append(q.hopeless, failure{j, job.End{Code: job.Dependency,
			Reason: fmt.Sprintf("it was to start %s %s, which can never come true any more", on[0].Condition, on[0].JobID)}})
	case verdict == job.Wait:
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForJob, Detail: describeDependencies(on)})
	case j.NotBefore.After(q.now):
		if q.opens.IsZero() || j.NotBefore.Before(q.opens) {
			q.opens = j.NotBefore
		}
		detail := "until " + ledger.FormatTimeSeen(j.NotBefore, q.now)
		if inReservation(j) {
			detail += ", in reservation " + j.Reservation
		}
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForTime, Detail: detail})
	case inReservation(j):
		q.jobs[j.ID] = j
		q.reserved = append(q.reserved, j.ID)
	case q.lacksNodes(j):
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForNodes, Detail: q.describeLack(j)})
	case q.lacksDaemons(j):
		q.later = append(q.later, ledger.QueuedJob{Job: j, Code: ledger.WaitsForDaemon, Detail: q.describeSilence(j)})
	default:
		q.jobs[j.ID] = j
		q.order = append(q.order, j.ID)
	}
}

// describeDependencies says for which others a job waits.
func describeDependencies(on []job.Depends) string {
	var all []string
	for _, d := range on[:min(len(on), mostNamed)] {
		all = append(all, fmt.Sprintf("%s %s", d.Condition, d.JobID))
	}
	if more := len(on) - mostNamed; more > 0 {
		all = append(all, phrase.Count(more, "other"))
	}
	return strings.Join(all, ", ")
}

// scheduler returns the scheduler of the pool as it is. Slots stand for nodes: also one that is
// empty can be booted.
func (q queue) scheduler() (*scheduler.Scheduler, error) { return q.schedulerWith(nil) }

// schedulerWith has jobs in it, too, that wait for a time.
func (q queue) schedulerWith(early []job.Job) (*scheduler.Scheduler, error) {
	p := policyOf(q)
	terms := q.terms()
	from := scheduler.Snapshot{Nodes: q.nodes(terms), Running: q.running(terms), Promises: q.promises(terms)}
	for _, id := range q.order {
		from.Waiting = append(from.Waiting, q.asWaiting(terms, q.jobs[id]))
	}
	for _, j := range early {
		from.Early = append(from.Early, q.asWaiting(terms, j))
	}
	from.Tenants, from.Users = usages(booking.UsesOf(p.FairShare, q.pool, q.now))
	s, err := scheduler.Restore(p, from)
	if err != nil {
		return nil, err
	}
	for _, dirty := range q.dirty() {
		s.Book(dirty)
	}
	return s, nil
}

// policyOf is what the scheduler of the pool goes by.
func policyOf(q queue) scheduler.Policy {
	p := q.rules.Policy(q.weights)
	p.MostWaiting = ledger.MostJobs
	if q.bounded {
		for tenant, most := range q.most {
			p.Tenants[tenant] = scheduler.Tenant{Weight: q.weights[tenant], MostGPU: most}
		}
	}
	return p
}

// usages are what the scheduler is to know of what each has had. What an organization had and none of its people did,
// keys had that belong to no person, which count as one.
func usages(of map[ledger.Account]fairshare.Usage) (tenants []scheduler.TenantUsage, users []scheduler.UserUsage) {
	nobody := map[string]fairshare.Usage{}
	for _, who := range slices.SortedFunc(maps.Keys(of), ledger.CompareAccounts) { // each before its people
		if who.UserID == "" {
			tenants = append(tenants, scheduler.TenantUsage{Tenant: who.OrganizationID, Usage: of[who]})
			nobody[who.OrganizationID] = of[who].Without(fairshare.Usage{})
			continue
		}
		users = append(users, scheduler.UserUsage{Tenant: who.OrganizationID, User: who.UserID, Usage: of[who]})
		nobody[who.OrganizationID] = nobody[who.OrganizationID].Without(of[who])
	}
	for organization, left := range nobody {
		users = append(users, scheduler.UserUsage{Tenant: organization, Usage: left})
	}
	return tenants, users
}

func (q queue) asWaiting(t terms, j job.Job) scheduler.Job {
	out := scheduler.Job{ID: j.ID, Tenant: j.OrganizationID, User: j.UserID, Key: j.SubmittedBy, Group: groupOf(j),
		Class:   string(q.rules.Priorities.CountsAs(j.Priority)),
		Request: t.requestOf(j), MaxRuntime: booking.LeaseOfJob(j),
		Predicted: cmp.Or(q.expected[j.ID].ForTurn(), q.typical, j.MaxRuntime),
		Eligible:  j.EligibleAt, NotBefore: j.NotBefore, Attained: j.Ran(),
		Preemptible: q.rules.Priorities.AllowsLeaving(j), Preemptions: j.Preemptions}
	if j.Checkpoint.Signal != "" { // it keeps its work when it is told
		out.Checkpoint = time.Second
	}
	return out
}

func placementSpot(slot, gpus int) placement.Spot {
	return placement.Spot{Node: nameOfSlot(slot), GPUs: gpus}
}

const slotPrefix = "slot-"

func nameOfSlot(slot int) string { return slotPrefix + strconv.Itoa(slot) }

func (q queue) nodes(t terms) []placement.Node {
	all := make([]placement.Node, q.pool.Pool.MaxNodes)
	p := q.pool.Pool.Pool
	labels, taints := t.labelsOf(p, node.Node{}), t.taintsOf(p, node.Node{})
	for slot := range all {
		all[slot] = placement.Node{ID: nameOfSlot(slot), Kind: placement.Kind{GPUs: p.PerNode}}
		all[slot].Labels, all[slot].Taints, all[slot].Cold = labels, taints, q.coldLast
	}
	for _, n := range q.pool.Nodes {
		if n.Slot < len(all) && !node.Machine.Terminal(n.State()) {
			all[n.Slot].Drained = isClosed(n) || q.isSilent(n)
			all[n.Slot].Labels, all[n.Slot].Taints = t.labelsOf(p, n), t.taintsOf(p, n)
			all[n.Slot].OneTenant = q.divides && n.Isolation.Mixes(p.Isolation)
			all[n.Slot].Celsius, all[n.Slot].Cold = n.Heat.Celsius, false
			if n.Heat.IsHot(q.now) {
				all[n.Slot].HotUntil = n.Heat.HotUntil
			}
		}
	}
	return all
}

// isClosed reports whether no work starts on a node's slot before it is gone.
func isClosed(n node.Node) bool {
	switch n.State() {
	case node.Requested, node.Provisioning, node.Booting, node.Ready, node.Gone, node.Failed:
		return false
	}
	return true
}

// running is what is on the slots by now: which of a node's GPUs it has does not matter here.
func (q queue) running(t terms) []scheduler.Running {
	taken := map[int]uint64{}
	var all []scheduler.Running
	for _, a := range q.pool.Allocations {
		if a.Live() && !a.Observed() {
			if r, ok := q.runningOf(t, a, taken); ok {
				all = append(all, r)
			}
		}
	}
	return all
}

func (q queue) runningOf(t terms, a allocation.Allocation, taken map[int]uint64) (scheduler.Running, bool) {
	r := scheduler.Running{Job: scheduler.Job{ID: a.ID, Tenant: a.OrganizationID, User: a.UserID,
		Class: string(q.rules.Priorities.CountsAs(job.Normal)), Group: groupOf(q.holders[a.ID]),
		Request:    placement.Request{Shape: a.Shape, Company: placement.Company{Tenant: tenantBeside(q, a)}},
		Eligible:   a.RequestedAt,
		MaxRuntime: a.Lease}, Started: a.RequestedAt, Until: a.Window.End}
	if j, ok := q.holders[a.ID]; ok {
		r.Job = q.asWaiting(t, j)
		r.ID, r.NotBefore = a.ID, time.Time{}
		r.Preemptible = mayLeave(j, a.ID, q.rules, q.now)
		r.Leaving = j.Ending.Is()
		if r.EndsBy = q.ends[j.ID]; j.Awaited.Is() { // nobody is waited for twice
			r.EndsBy = j.Awaited.Until
		}
		r.Predicted = cmp.Or(q.expected[j.ID].ForTurn(), j.MaxRuntime)
		if !j.StartedAt.IsZero() {
			r.Started = j.StartedAt
		}
		if overdue := overdueIn(q.rules, j); j.ScheduledAt.Sub(j.EligibleAt) >= overdue+r.Attained {
			r.Overdue = true
		}
		if r.Leaving {
			r.Until = j.Ending.By
		}
	}
	if !r.Until.After(q.now) {
		r.Until = q.now.Add(time.Second) // its end is about to be seen
	}
	for i, slot := range a.Slots {
		devices := lowestFree(taken[slot], a.Shape.On(i), q.pool.Pool.PerNode)
		if devices == 0 || slot >= q.pool.Pool.MaxNodes {
			return r, false // the pool was made smaller around it
		}
		taken[slot] |= devices
		r.Spots = append(r.Spots, placement.Spot{Node: nameOfSlot(slot), GPUs: a.Shape.On(i), Devices: devices})
	}
	return r, true
}

// overdueIn is after how long a wait a job goes first.
func overdueIn(rules ledger.Scheduling, j job.Job) time.Duration {
	return cmp.Or(rules.Priorities.Of(j.Priority).Overdue, rules.Policy(nil).Overdue)
}

// lowestFree are so many of a node's devices that nobody has; 0: there are not enough.
func lowestFree(taken uint64, n, of int) (devices uint64) {
	for i := 0; i < of && bits.OnesCount64(devices) < n; i++ {
		if taken&(1<<i) == 0 {
			devices |= 1 << i
		}
	}
	if bits.OnesCount64(devices) < n {
		return 0
	}
	return devices
}
