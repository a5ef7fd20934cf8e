package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// shownWaiting of each pool's queue: who comes next is what people look for.
const shownWaiting = 10

// shownRunning jobs of all pools.
const shownRunning = 50

// withGPUs are the states of jobs that have GPUs.
var withGPUs = []string{string(job.Scheduled), string(job.Running), string(job.Preempted)}

// queueRow is the queue of a pool, as far as the reader may see it.
type queueRow struct {
	Pool                   string
	Running, Waiting, Held int
	More                   int // wait behind those shown
	Note                   string
	Next                   []waitingRow
}

type waitingRow struct {
	Place, ID, Name, Who, GPUs, Since, Why, Start string
}

type runningRow struct {
	ID, Name, Pool, State, Who, GPUs, For string
}

// jobReading reads the jobs of the page on one snapshot.
type jobReading struct {
	ledger.Reader
	of  ledger.Scope
	now time.Time
}

// addJobs shows what runs and who comes next. A queue is made only for a pool in which the reader has a job that waits.
func (p *Page) addJobs(v *view, r jobReading) error {
	pools, err := r.Pools(ledger.Page{Limit: most})
	if err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	var shown [][]ledger.QueuedJob
	all := 0
	for _, pool := range pools {
		row, err := r.countQueue(pool)
		if err != nil {
			return err
		}
		if all += row.Running; row.Running+row.Waiting+row.Held == 0 {
			continue
		}
		next, err := p.addNext(&row, pool.ID, r)
		if err != nil {
			return err
		}
		v.Queues, shown = append(v.Queues, row), append(shown, next)
	}
	if len(v.Queues) == 0 {
		return nil
	}
	running, err := r.Jobs(r.of, ledger.JobFilter{State: withGPUs}, ledger.Page{Limit: shownRunning, Newest: true})
	if err != nil {
		return fmt.Errorf("listing jobs that run: %w", err)
	}
	v.MoreRunning = max(0, all-len(running))
	return v.nameJobs(r, shown, running)
}

// countQueue counts the reader's jobs in a pool.
func (r jobReading) countQueue(pool ledger.Pool) (queueRow, error) {
	n, err := r.CountJobs(r.of, ledger.JobFilter{PoolID: pool.ID, Live: true})
	if err != nil {
		return queueRow{}, fmt.Errorf("counting jobs: %w", err)
	}
	return queueRow{Pool: pool.Name, Running: n[job.Scheduled] + n[job.Running] + n[job.Preempted],
		Waiting: n[job.Pending], Held: n[job.Held]}, nil
}

// addNext is who comes next of the reader's jobs; their places are those among all.
func (p *Page) addNext(row *queueRow, poolID string, r jobReading) (next []ledger.QueuedJob, err error) {
	if row.Waiting == 0 {
		return nil, nil
	}
	queue, err := p.Ledger.QueueOf(r.Reader, poolID)
	if err != nil {
		return nil, fmt.Errorf("reading the queue of %s: %w", row.Pool, err)
	}
	for _, q := range queue {
		if len(next) == shownWaiting {
			break
		}
		if r.of.All || q.OrganizationID == r.of.OrganizationID {
			next = append(next, q)
		}
	}
	row.More = max(0, row.Waiting-len(next))
	since, gone, err := p.Ledger.Waits(r.Reader).WorkersGone()
	if err != nil {
		return nil, fmt.Errorf("looking for workers: %w", err)
	}
	if gone {
		row.Note = "no worker is there"
		if !since.IsZero() {
			row.Note = ledger.NoWorkerSince(since, r.now)
		}
		row.Note += ": nothing is started"
	}
	return next, nil
}

// nameJobs adds the rows, with who submitted each.
func (v *view) nameJobs(r jobReading, next [][]ledger.QueuedJob, running []job.Job) error {
	var shown []job.Job
	for _, some := range next {
		for _, q := range some {
			shown = append(shown, q.Job)
		}
	}
	who, err := submittersOf(r, append(shown, running...))
	if err != nil {
		return err
	}
	pools := map[string]string{}
	for i, some := range next {
		for _, q := range some {
			v.Queues[i].Next = append(v.Queues[i].Next, waitingRowOf(q, who, r.now, v.Queues[i].Note == ""))
		}
	}
	names, err := r.Names(r.of, ledger.NounPool, poolsOf(running))
	if err != nil {
		return fmt.Errorf("reading names of pools: %w", err)
	}
	for _, n := range names {
		pools[n.ID] = n.Name
	}
	for _, j := range running {
		v.Running = append(v.Running, runningRow{ID: j.ID, Name: jobName(j), Pool: pools[j.PoolID],
			State: string(j.State()), Who: who[j.ID], GPUs: strconv.Itoa(j.Shape.GPUs()), For: ranFor(j, r.now)})
	}
	return nil
}

func poolsOf(all []job.Job) (ids []string) {
	for _, j := range all {
		ids = append(ids, j.PoolID)
	}
	return ids
}

func waitingRowOf(q ledger.QueuedJob, who map[string]string, now time.Time, foretold bool) waitingRow {
	row := waitingRow{Place: "–", ID: q.ID, Name: jobName(q.Job), Who: who[q.ID], GPUs: strconv.Itoa(q.Shape.GPUs()),
		Since: "–", Why: cmp.Or(strings.TrimPrefix(q.WaitText(), "; "), waitWords(q.Code)), Start: "–"}
	if q.Position > 0 {
		row.Place = strconv.Itoa(q.Position)
	}
	if began := q.WaitsSince(); q.IsEligible() && !began.After(now) {
		row.Since = formatSpan(now.Sub(began))
	}
	switch {
	case !foretold:
	case q.Start != nil:
		row.Start = formatBand(q.Start.Band, now)
	case q.Unpredicted != "":
		row.Start = "unknown: " + q.Unpredicted
	}
	return row
}

func waitWords(code string) string {
	if code == ledger.WaitsForGPUs {
		return "waits for GPUs"
	}
	return codeWords(code)
}

// jobName is what a job is called; one of an array by its index, too.
func jobName(j job.Job) string {
	if j.Array.ID == "" {
		return j.Name
	}
	return fmt.Sprintf("%s[%d]", j.Name, j.ArrayIndex)
}

// ranFor is for how long an attempt has had its GPUs, or its processes have run.
func ranFor(j job.Job, now time.Time) string {
	if since := j.StartedAt; j.State() != job.Scheduled && !since.IsZero() {
		return formatSpan(now.Sub(since))
	}
	return "starts since " + formatSpan(now.Sub(j.ScheduledAt))
}

// formatBand is in how long something is predicted to happen, from the earliest to the latest.
func formatBand(b ledger.Band, now time.Time) string {
	early, late := formatAbout(b.P10.Sub(now)), formatAbout(b.P90.Sub(now))
	if early == late {
		return "in about " + early
	}
	return "in " + early + " to " + late
}

// formatAbout is about how long something is: a prediction is right to the minute at best.
func formatAbout(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	d = d.Round(5 * time.Minute)
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// submittersOf says who submitted jobs, by the job: a person by what stands before the @, or a key by its name.
func submittersOf(r jobReading, all []job.Job) (map[string]string, error) {
	var people, keys []string
	for _, j := range all {
		people, keys = append(people, j.UserID), append(keys, j.SubmittedBy)
	}
	names, err := namesOf(r, r.of, keys)
	if err != nil {
		return nil, err
	}
	persons, err := r.Names(r.of, ledger.NounUser, people)
	if err != nil {
		return nil, fmt.Errorf("reading who submitted jobs: %w", err)
	}
	for _, n := range persons {
		names[n.ID], _, _ = strings.Cut(n.Name, "@")
	}
	who := make(map[string]string, len(all))
	for _, j := range all {
		who[j.ID] = cmp.Or(names[j.UserID], names[j.SubmittedBy], j.SubmittedBy)
	}
	return who, nil
}
