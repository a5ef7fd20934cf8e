package ledgermetrics

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// readLevels is what one reading of the ledger comes to.
type readLevels struct {
	metrics []prometheus.Metric
	held    map[string]int // GPUs that organizations hold or are promised now, by id

	presences map[string]ledger.Presence // of daemons, by node
	devices   int                        // GPUs that were told of one by one
}

// readAll reads everything on one snapshot.
func (l *readLevels) readAll(r ledger.Reader) error {
	l.metrics, l.held = []prometheus.Metric{ledgerUp.withValue(1)}, map[string]int{}
	if err := l.readPresences(r); err != nil {
		return err
	}
	if err := l.takePools(r); err != nil {
		return err
	}
	if err := l.takeWatched(r); err != nil {
		return err
	}
	if err := l.takeQuotas(r); err != nil {
		return err
	}
	return l.takeTasks(r)
}

func (l *readLevels) addLevel(g gauge, value int, labels ...string) {
	l.metrics = append(l.metrics, g.withValue(float64(value), labels...))
}

// addStates adds a gauge for each state that anything is in, in a steady order,
// and for each of always, so that a series does not vanish at 0.
func (l *readLevels) addStates(g gauge, pool string, counts map[string]int, always ...string) {
	for _, state := range always {
		counts[state] += 0
	}
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		l.addLevel(g, counts[state], pool, state)
	}
}

func (l *readLevels) takePools(r ledger.Reader) error {
	for after := ""; ; {
		pools, err := r.Pools(ledger.Page{After: after})
		if err != nil {
			return fmt.Errorf("reading pools: %w", err)
		}
		for _, p := range pools {
			state, err := r.LiveState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool %s: %w", p.Name, err)
			}
			l.takePool(state, r.Now())
			if err := l.takeJobs(r, p); err != nil {
				return err
			}
			after = p.ID
		}
		if len(pools) == 0 {
			return nil
		}
	}
}

func (l *readLevels) takePool(s ledger.PoolState, now time.Time) {
	pool := s.Pool.Name
	l.addLevel(poolGPUs, s.Pool.MaxNodes*s.Pool.PerNode, pool)
	l.addLevel(recovering, boolToInt(s.Pool.Recovery.Active()), pool)
	l.takeNodes(s, now)
	l.takeDaemons(s, now)
	byState, waitlisted := map[string]int{}, 0
	used := map[capacity.Workload]int{}
	for _, r := range s.Reservations {
		byState[string(r.State())]++
		if r.State() == reservation.Waitlisted {
			waitlisted++
		}
		if r.Placed() && r.Window.Contains(now) {
			l.held[r.OrganizationID] += r.Shape.GPUs()
			used[r.Workload] += r.Shape.GPUs()
		}
	}
	l.addStates(reservations, pool, byState, string(reservation.Booked), string(reservation.Ready))
	byState = map[string]int{}
	for _, a := range s.Allocations {
		byState[string(a.State())]++
		if a.Live() {
			l.held[a.OrganizationID] += a.Shape.GPUs()
			used[a.Workload] += a.Shape.GPUs()
		}
	}
	l.addLevel(queueLength, byState[string(allocation.Pending)], pool, "allocations")
	l.addLevel(queueLength, waitlisted, pool, "waitlist")
	l.addStates(allocations, pool, byState, string(allocation.Active), string(allocation.Pending))
	if s.Pool.OnlineShare > 0 {
		online, batch := admission.Shares(s.Pool.Pool)
		for workload, limit := range map[capacity.Workload]int{capacity.Online: online, capacity.Batch: batch} {
			l.addLevel(workloadUsed, used[workload], pool, string(workload))
			l.addLevel(workloadLimit, limit, pool, string(workload))
		}
	}
}

// takeJobs counts the jobs of a pool that are not over.
func (l *readLevels) takeJobs(r ledger.Reader, p ledger.Pool) error {
	counts, err := r.CountJobs(ledger.Scope{All: true}, ledger.JobFilter{PoolID: p.ID, Live: true})
	if err != nil {
		return fmt.Errorf("counting the jobs of pool %s: %w", p.Name, err)
	}
	byState := map[string]int{}
	for state, n := range counts {
		byState[string(state)] = n
	}
	l.addStates(jobs, p.Name, byState, string(job.Pending), string(job.Running))
	l.addLevel(queueLength, byState[string(job.Pending)], p.Name, "jobs")
	return nil
}

// boolToInt is 1 for true.
func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// takeNodes counts nodes by state, and their GPUs as the API does.
func (l *readLevels) takeNodes(s ledger.PoolState, now time.Time) {
	byState, byUse := map[string]int{}, map[string]int{}
	for _, n := range s.Nodes {
		byState[string(n.State())]++
	}
	for _, d := range s.Devices(now) {
		byUse[string(d.State)]++
	}
	l.addStates(nodes, s.Pool.Name, byState, string(node.Ready))
	l.addStates(gpus, s.Pool.Name, byUse, "held", "booked", "free", "coming", "unavailable")
}

// takeWatched tells how well the clusters of observed pools are watched.
func (l *readLevels) takeWatched(r ledger.Reader) error {
	pools, err := ledger.ObservedPools(r, "")
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for _, p := range pools {
		if told[p.Provisioner] {
			continue
		}
		told[p.Provisioner] = true
		seen, err := r.Watched(p.Provisioner)
		if err != nil {
			return fmt.Errorf("reading how %s is watched: %w", p.Provisioner, err)
		}
		dark := 0.0
		if !seen.BlindSince.IsZero() {
			dark = max(0, r.Now().Sub(seen.BlindSince).Seconds())
		}
		l.metrics = append(l.metrics, blind.withValue(dark, p.Provisioner))
	}
	return nil
}

func (l *readLevels) takeQuotas(r ledger.Reader) error {
	organizations, err := r.Organizations(ledger.Scope{All: true}, ledger.Page{Limit: maxOrganizations})
	if err != nil {
		return fmt.Errorf("reading organizations: %w", err)
	}
	for _, org := range organizations {
		l.addLevel(quotaUsed, l.held[org.ID], org.Name)
		l.addLevel(quotaLimit, org.Limits.GPUs, org.Name)
	}
	return nil
}

func (l *readLevels) takeTasks(r ledger.Reader) error {
	counts, err := r.Tasks()
	if err != nil {
		return fmt.Errorf("counting tasks: %w", err)
	}
	for _, state := range []ledger.TaskState{ledger.TaskReady, ledger.TaskRunning, ledger.TaskDone} {
		l.addLevel(taskRows, counts[state], string(state))
	}
	all, err := r.Failing(ledger.TroubleAfter)
	if err != nil {
		return fmt.Errorf("reading what fails: %w", err)
	}
	byKind := map[string]int{ledger.TaskCreateNode: 0, ledger.TaskCheckNode: 0, ledger.TaskSweep: 0,
		ledger.TaskObserve: 0, ledger.TaskKeep: 0}
	for _, t := range all {
		byKind[t.Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		l.addLevel(failing, byKind[kind], kind)
	}
	since, _, err := r.LateSince()
	if err != nil {
		return fmt.Errorf("reading how late work is: %w", err)
	}
	lag := 0.0
	if !since.IsZero() {
		lag = max(0, r.Now().Sub(since).Seconds())
	}
	l.metrics = append(l.metrics, taskLag.withValue(lag))
	return nil
}
