package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/forewarm/forewarm/agent/history"
)

// Trace is a job history cut in two: what the agents know when the scored part
// begins, and what happens in it.
type Trace struct {
	Before []history.Record // submitted up to From
	Jobs   []history.Record // submitted after From and up to To
	From   time.Time
	To     time.Time
}

// runningJobs are the jobs that hold GPUs when the scored part begins, none of them
// having waited.
func (t Trace) runningJobs() []history.Record {
	var found []history.Record
	for _, job := range t.Before {
		if jobEnd(job).After(t.From) {
			found = append(found, job)
		}
	}
	return found
}

// jobEnd is when a job ends that did not wait.
func jobEnd(job history.Record) time.Time { return job.Submitted.Add(job.Duration) }

// settlingTime is how long before the scored part the running jobs ask for their
// GPUs: a boot, and the time to make the nodes' way to it.
func (o Options) settlingTime() time.Duration { return o.Boot + time.Minute }

// warmUp is the share of a trace's time that is only learned from, as the
// benchmark defines it.
const warmUp = 0.3

// ReadTrace reads a trace (CSV, perhaps gzipped) and cuts days out of it,
// beginning after the first three tenths of its time. Tenants are its groups.
func ReadTrace(r io.Reader, days float64) (Trace, history.Report, error) {
	var all []history.Record
	rep, err := history.ReadCSV(r, history.Options{}, func(rec history.Record) error {
		all = append(all, rec)
		return nil
	})
	if err != nil {
		return Trace{}, rep, fmt.Errorf("reading trace: %w", err)
	}
	if len(all) == 0 {
		return Trace{}, rep, fmt.Errorf("reading trace: it holds no jobs")
	}
	slices.SortStableFunc(all, func(a, b history.Record) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	first, last := all[0].Submitted, all[len(all)-1].Submitted
	t := Trace{From: first.Add(time.Duration(warmUp * float64(last.Sub(first)))).Truncate(time.Second)}
	t.To = t.From.Add(time.Duration(days * float64(24*time.Hour)))
	for _, job := range all {
		switch {
		case !job.Submitted.After(t.From):
			t.Before = append(t.Before, job)
		case !job.Submitted.After(t.To):
			t.Jobs = append(t.Jobs, job)
		}
	}
	return t, rep, nil
}

// tenantNames lists the tenants of a trace in order.
func (t Trace) tenantNames() []string {
	var names []string
	for _, jobs := range [][]history.Record{t.Before, t.Jobs} {
		for _, job := range jobs {
			if i, ok := slices.BinarySearch(names, job.Tenant); !ok {
				names = slices.Insert(names, i, job.Tenant)
			}
		}
	}
	return names
}

// peakGPUs is the most GPUs that a tenant's jobs hold at once if none waits.
func (t Trace) peakGPUs(tenant string) int {
	type change struct {
		at   time.Time
		gpus int
	}
	var changes []change
	for _, job := range slices.Concat(t.runningJobs(), t.Jobs) {
		if job.Tenant == tenant {
			changes = append(changes, change{job.Submitted, job.GPUs}, change{jobEnd(job), -job.GPUs})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.gpus, b.gpus)) })
	held, most := 0, 0
	for _, c := range changes {
		held += c.gpus
		most = max(most, held)
	}
	return most
}
