package backtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	core "github.com/forewarm/forewarm/core/backtest"
)

// past is a history that can be replayed.
type past struct {
	trace  core.Trace
	waited []int64 // how long each job really waited, in seconds; unknown if not known
	counts Counts
	future time.Time // when the first job of those after now was submitted
}

// unknown stands for a wait that the history does not tell.
const unknown = -1

// Counts says what became of the rows of a history.
type Counts struct {
	Rows       int64 `json:"rows"`        // read
	Broken     int64 `json:"broken"`      // that broke a rule and were left out
	NoGPU      int64 `json:"no_gpu"`      // that are no GPU job
	Repeated   int64 `json:"repeated"`    // that told of a job again
	Elsewhere  int64 `json:"elsewhere"`   // of other tenants or earlier days than were asked for
	NeverRan   int64 `json:"never_ran"`   // that ended or wait without having had a GPU
	NoRunTime  int64 `json:"no_run_time"` // that ended without saying how long they ran
	TooLarge   int64 `json:"too_large"`   // of more GPUs than can be replayed
	Future     int64 `json:"future"`      // that begin or end after now: a wrong clock, or a wrong date
	StillRuns  int64 `json:"still_runs"`  // that had not ended: taken to run to the history's end
	StartKnown int64 `json:"start_known"` // that say when they really started
}

// prepareInput makes a past of what was read.
func prepareInput(in Input, c Config) (*past, error) {
	p := &past{counts: Counts{Rows: in.Report.Rows, Broken: in.Report.Broken, NoGPU: in.Report.Skipped}}
	records := keepLatest(in.Records)
	p.counts.Repeated = int64(len(in.Records) - len(records))
	records = p.dropFuture(records, c.Now)
	if len(records) == 0 && p.counts.Future > 0 {
		return nil, fmt.Errorf("preparing the history: all %d jobs begin after now, %s, the first at %s: is a clock wrong?",
			p.counts.Future, c.Now.UTC().Format(time.RFC3339), p.future.UTC().Format(time.RFC3339))
	}
	found, end := len(records), endOf(records)
	chosen := c.chooseRecords(slices.Clone(records))
	p.counts.Elsewhere = int64(found - len(chosen))
	tenants := map[string]int{}
	for _, name := range tenantsOf(chosen) {
		tenants[name] = len(p.trace.Tenants)
		p.trace.Tenants = append(p.trace.Tenants, name)
	}
	for _, r := range chosen {
		if seconds, ok := p.counts.runTime(r, end); ok {
			p.addRecord(r, seconds, tenants[r.Tenant])
		}
	}
	if found > 0 && len(chosen) == 0 {
		return nil, &NoTenantError{Tenant: c.Tenant, Known: tenantsOf(records)}
	}
	if len(p.trace.Jobs) == 0 {
		return nil, fmt.Errorf("preparing the history: %w", ErrNoJobs)
	}
	return p, nil
}

// tolerance is how far after now a row may lie: clocks and time zones differ.
const tolerance = 24 * time.Hour

// dropFuture leaves out, in place, the rows that lie after now: one of a wrong year would make the history end there.
func (p *past) dropFuture(records []history.Record, now time.Time) []history.Record {
	if now.IsZero() {
		return records
	}
	limit := now.Add(tolerance)
	return slices.DeleteFunc(records, func(r history.Record) bool {
		began := r.State != history.Pending && (r.Started.After(limit) || r.State != history.Running && r.Ended.After(limit))
		if !r.Submitted.After(limit) && !began {
			return false
		}
		if p.counts.Future++; p.future.IsZero() || r.Submitted.Before(p.future) {
			p.future = r.Submitted
		}
		return true
	})
}

func (p *past) addRecord(r history.Record, seconds int64, tenant int) {
	waited := int64(unknown)
	if !r.Started.IsZero() {
		waited = max(0, r.Started.Unix()-r.Submitted.Unix())
		p.counts.StartKnown++
	}
	p.waited = append(p.waited, waited)
	p.trace.Jobs = append(p.trace.Jobs, core.Job{
		ID: r.ID, Submit: r.Submitted.Unix(), Duration: seconds, GPUs: r.GPUs, Tenant: tenant,
		Traits: core.Traits{Class: r.Class, Array: r.Array, Failed: r.Failed()},
	})
}

// keepLatest returns one record of each job, in an order that does not depend on
// that of the rows. Of several records of a job, the one that tells most counts:
// it ended last, or else started last.
func keepLatest(records []history.Record) []history.Record {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b history.Record) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), b.Ended.Compare(a.Ended), b.Started.Compare(a.Started),
			cmp.Compare(b.Duration, a.Duration), b.Submitted.Compare(a.Submitted), cmp.Compare(b.GPUs, a.GPUs),
			cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.State, b.State), cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Array, b.Array))
	})
	sorted = slices.CompactFunc(sorted, func(a, b history.Record) bool { return a.ID == b.ID })
	slices.SortFunc(sorted, func(a, b history.Record) int {
		return cmp.Or(cmp.Compare(a.Submitted.Unix(), b.Submitted.Unix()), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}

// chooseRecords returns the records of the tenant and the days that were asked for, in
// place. Days are counted back from the last job of the tenant.
func (c Config) chooseRecords(records []history.Record) []history.Record {
	mine := slices.DeleteFunc(records, func(r history.Record) bool { return c.Tenant != "" && r.Tenant != c.Tenant })
	if c.Days == 0 || len(mine) == 0 {
		return mine
	}
	from := mine[len(mine)-1].Submitted.Add(-time.Duration(c.Days) * 24 * time.Hour)
	return slices.DeleteFunc(mine, func(r history.Record) bool { return r.Submitted.Before(from) })
}

func tenantsOf(records []history.Record) []string {
	seen := map[string]bool{}
	var names []string
	for _, r := range records {
		if !seen[r.Tenant] {
			seen[r.Tenant] = true
			names = append(names, r.Tenant)
		}
	}
	slices.Sort(names)
	return names
}

// endOf returns the last instant of which the history speaks. Of a job that still
// waits, the start is an estimate.
func endOf(records []history.Record) time.Time {
	var end time.Time
	for _, r := range records {
		end = laterOf(end, r.Submitted)
		if r.State != history.Pending {
			end = laterOf(laterOf(end, r.Started), r.Ended)
		}
	}
	return end
}

// runTime returns for how many seconds a job ran, or has run by the end of the
// history, and counts it if it is to be left out.
func (c *Counts) runTime(r history.Record, end time.Time) (int64, bool) {
	switch {
	case r.GPUs > core.MaxGPUs:
		c.TooLarge++
	case r.State == history.Pending, neverRan(r):
		c.NeverRan++
	case r.Duration > 0:
		return wholeSeconds(r.Duration), true
	case !r.Started.IsZero() && !r.Ended.IsZero(): // under a second
		return 1, true
	case r.State == history.Running, r.State == history.Unknown && !r.Started.IsZero():
		c.StillRuns++
		return wholeSeconds(end.Sub(laterOf(r.Submitted, r.Started))), true
	default:
		c.NoRunTime++
	}
	return 0, false
}

// neverRan tells of a job that was cancelled while it waited. Slurm may give such
// a job the time of its end as its start.
func neverRan(r history.Record) bool {
	return r.State == history.Cancelled && r.Duration == 0 && (r.Started.IsZero() || r.Started.Equal(r.Ended))
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// wholeSeconds rounds to seconds, of which every job takes one.
func wholeSeconds(d time.Duration) int64 { return max(1, int64(math.Round(d.Seconds()))) }
