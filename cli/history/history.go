// Package history writes down what was run, for an agent to learn from.
package history

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Run is one job, or what somebody allocated by hand, with the names that forewarm-agent reads in JSONL. Times are Unix
// seconds.
type Run struct {
	ID        string `json:"job_id"`
	Group     string `json:"group"`
	User      string `json:"user,omitempty"`
	Submitted int64  `json:"submit_ts"`
	Started   int64  `json:"start_ts,omitempty"`
	Duration  int64  `json:"duration_s,omitempty"`
	GPUs      int    `json:"gpus"`
	Status    string `json:"status"`
	Name      string `json:"name"`
	Comment   string `json:"comment"` // job or allocation
	Array     string `json:"array,omitempty"`
	Pool      string `json:"pool"`
}

// NewCommand is the command history.
func NewCommand(a *app.App) *cobra.Command {
	last := flags.Span(90 * 24 * time.Hour)
	var f client.Filter
	c := &cobra.Command{
		Use: "history", Short: "Write down what was run, for an agent to learn from", Args: flags.NoArgs,
		Long: `Each job, and what somebody allocated by hand, is one line: who wanted how many GPUs when, and for how
long. With -o jsonl the lines are what forewarm-agent reads as a source of kind jobs with the format jsonl.

What was submitted or allocated in the period is there, and what had begun before it and had not ended by then. An
allocation counts for as long as its GPUs were used: idleness at its end is left off, and so are allocations whose
GPUs nobody used at all, where the daemons of their nodes told. Left out, too, is what a cluster's own scheduler placed:
the agent reads that from the cluster.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			f.All, f.Used, f.Since = true, true, a.Clock.Now().Add(-last.Duration())
			runs, unused, err := readRuns(cmd.Context(), api, f)
			if err != nil {
				return err
			}
			if unused > 0 {
				cmd.PrintErrf("left out: %s whose GPUs nobody used\n", format.Count(unused, "allocation"))
			}
			if len(runs) == 0 && (a.Flags.Output == output.Table || a.Flags.Output == output.Wide) {
				a.Say(cmd, "Nothing was run in the last %s: --last looks further back", last.LongText())
				return nil
			}
			return output.List(a, cmd, view, runs)
		},
	}
	c.Flags().Var(&last, "last", "the period up to now, such as 30d")
	c.Flags().StringVar(&f.Pool, "pool", "", "only what was run in this pool")
	return c
}

// readRuns reads what was wanted since a time, in the order in which it was asked for, and says how many allocations it
// left out that nobody used.
func readRuns(ctx context.Context, api *client.Client, f client.Filter) (runs []Run, unused int, err error) {
	jobs, told := client.JobFilter{Filter: f}, map[string]bool{}
	jobs.Used = false
	for j, err := range api.Jobs(ctx, jobs) {
		if err != nil {
			return nil, 0, err
		}
		runs, told[j.ID] = append(runs, runOfJob(j)), true
	}
	for x, err := range api.Allocations(ctx, f) {
		switch {
		case err != nil:
			return nil, 0, err
		case x.Work != nil || told[x.JobID]:
		case x.JobID != "": // it was submitted before, and whoever learned of that is to learn how it ended
			j, err := api.Job(ctx, x.JobID)
			if err != nil {
				return nil, 0, err
			}
			runs, told[j.ID] = append(runs, runOfJob(j)), true
		case !x.UsedUntil.IsZero() && !x.UsedUntil.After(x.ActiveAt):
			unused++
		default:
			runs = append(runs, runOfAllocation(x))
		}
	}
	slices.SortStableFunc(runs, func(x, y Run) int {
		return cmp.Or(cmp.Compare(x.Submitted, y.Submitted), cmp.Compare(x.ID, y.ID))
	})
	return runs, unused, nil
}

func runOfJob(j contract.Job) Run {
	r := Run{ID: j.ID, Group: cmp.Or(j.OrganizationName, j.OrganizationID), User: cmp.Or(j.UserEmail, j.UserID,
		j.SubmittedByName, j.SubmittedBy), Submitted: j.SubmittedAt.Unix(), GPUs: j.GPUs, Status: j.State, Name: j.Name,
		Comment: "job", Array: j.ArrayID, Pool: cmp.Or(j.PoolName, j.PoolID)}
	if j.State == contract.JobScheduled || j.State == contract.JobPreempted {
		r.Status = contract.JobPending // it is about to run, or runs again
		return r
	}
	if j.Reason == contract.JobTimeLimit {
		r.Status = "timeout"
	}
	return r.during(j.StartedAt, j.EndedAt)
}

// statusOf has the words of jobs for the states of allocations.
var statusOf = map[string]string{"active": contract.JobRunning, "releasing": contract.JobRunning,
	"released": contract.JobCompleted, "expired": contract.JobCompleted}

func runOfAllocation(x contract.Allocation) Run {
	r := Run{ID: x.ID, Group: cmp.Or(x.OrganizationName, x.OrganizationID), User: cmp.Or(x.HeldByName, x.HeldBy),
		Submitted: x.RequestedAt.Unix(), GPUs: x.GPUs, Status: cmp.Or(statusOf[x.State], x.State), Name: x.Name,
		Comment: "allocation", Pool: cmp.Or(x.PoolName, x.PoolID)}
	end := x.EndedAt
	if !x.UsedUntil.IsZero() {
		end = x.UsedUntil
	}
	return r.during(x.ActiveAt, end)
}

// during is a run with its times, as far as they are known.
func (r Run) during(start, end time.Time) Run {
	if start.IsZero() {
		return r
	}
	r.Started = start.Unix()
	if !end.IsZero() {
		r.Duration = max(end.Unix()-r.Started, 1)
	}
	return r
}

var view = output.View[Run]{
	Name: func(x Run) string { return x.ID },
	Columns: []output.Column[Run]{
		{Head: "ID", Cell: func(x Run) string { return x.ID }},
		{Head: "NAME", Cell: func(x Run) string { return format.OrDash(x.Name) }},
		{Head: "USER", Cell: func(x Run) string { return format.OrDash(x.User) }},
		{Head: "POOL", Cell: func(x Run) string { return x.Pool }},
		{Head: "GPUS", Right: true, Cell: func(x Run) string { return strconv.Itoa(x.GPUs) }},
		{Head: "STATUS", Cell: func(x Run) string { return x.Status }},
		{Head: "SUBMITTED", Cell: func(x Run) string { return format.Time(time.Unix(x.Submitted, 0)) }},
		{Head: "RAN", Right: true, Cell: func(x Run) string {
			if x.Duration == 0 {
				return "-"
			}
			return format.Seconds(x.Duration)
		}},
	},
}
