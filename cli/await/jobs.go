package await

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Jobs are several jobs, and whole arrays, that are waited for as one.
type Jobs struct {
	Named []names.Jobs
	Any   bool // the first that is over ends the wait
}

// Until waits until all of them are over, or one if that is enough, and returns how many are how far. Unless those that
// are over have completed, that is an error.
func (x Jobs) Until(a *app.App, cmd *cobra.Command, api *client.Client) (counts contract.JobCounts, err error) {
	over := map[string]contract.JobCounts{} // of those of which nothing more is to come
	err = waitUntil(a, cmd, []string{contract.JobFailed}, func(ctx context.Context) (watched, error) {
		seen := watched{id: x.ids(), several: true, next: "forewarm jobs list --all"}
		if len(x.Named) > 1 {
			seen.label = x.label()
		} else if x.Named[0].IsArray {
			seen.next += " --array " + x.Named[0].ID
		}
		counts = contract.JobCounts{}
		for _, named := range x.Named {
			n, known := over[named.ID]
			if !known {
				if n, err = countOf(ctx, api, named); err != nil {
					return seen, err
				}
				if goesOn(n) == 0 {
					over[named.ID] = n
				}
			}
			counts = sum(counts, n)
		}
		ended := goesOn(counts) == 0 || x.Any && isAnyOver(counts)
		switch seen.text = format.JobCounts(counts); {
		case ended && counts.Failed+counts.Cancelled > 0:
			seen.state = contract.JobFailed
		case ended:
			seen.done = true
		}
		return seen, nil
	})
	return counts, err
}

func (x Jobs) label() string {
	if slices.ContainsFunc(x.Named, func(named names.Jobs) bool { return named.IsArray }) {
		return fmt.Sprintf("%d jobs and arrays", len(x.Named))
	}
	return format.Count(len(x.Named), "job")
}

func (x Jobs) ids() string {
	all := make([]string, 0, len(x.Named))
	for _, named := range x.Named {
		all = append(all, named.ID)
	}
	return strings.Join(all, " ")
}

// countOf counts the jobs of an array, or one job.
func countOf(ctx context.Context, api *client.Client, named names.Jobs) (n contract.JobCounts, err error) {
	if named.IsArray {
		if n, err = api.CountJobs(ctx, client.JobFilter{Array: named.ID}); err == nil && n == (contract.JobCounts{}) {
			_, err = api.Job(ctx, named.ID) // nobody knows it, and the server says so
		}
		return n, err
	}
	job, err := api.Job(ctx, named.ID)
	for state, count := range countersOf(&n) {
		if state == job.State {
			*count = 1
		}
	}
	return n, err
}

// countersOf are the numbers of counts, by the states that they are of.
func countersOf(n *contract.JobCounts) map[string]*int {
	return map[string]*int{contract.JobPending: &n.Pending, contract.JobHeld: &n.Held, contract.JobScheduled: &n.Scheduled,
		contract.JobRunning: &n.Running, contract.JobPreempted: &n.Preempted, contract.JobCompleted: &n.Completed,
		contract.JobFailed: &n.Failed, contract.JobCancelled: &n.Cancelled}
}

func sum(x, y contract.JobCounts) contract.JobCounts {
	more := countersOf(&y)
	for state, count := range countersOf(&x) {
		*count += *more[state]
	}
	return x
}

func goesOn(n contract.JobCounts) int {
	return n.Pending + n.Held + n.Scheduled + n.Running + n.Preempted
}

func isAnyOver(n contract.JobCounts) bool { return n.Completed+n.Failed+n.Cancelled > 0 }
