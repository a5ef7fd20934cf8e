package names

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Jobs are what a person names of jobs: one, or an array.
type Jobs struct {
	ID      string // of the job, or of the array
	IsArray bool
}

// ArrayPrefix begins the ids of arrays.
const ArrayPrefix = "arr_"

// indexed is NAME[7] or ARRAY[7], as lists show them, or ARRAY_7, as users of Slurm write it.
var indexed = regexp.MustCompile(`^(?:(.+)\[(\d{1,7})\]|(` + ArrayPrefix + `[^_]+)_(\d{1,7}))$`)

// FindJobs accepts the id or the name of a job or an array, and NAME[INDEX], ARRAY[INDEX] or ARRAY_INDEX for one job of
// an array. A name stands for the whole array where one request made what is called so.
func FindJobs(a *app.App, cmd *cobra.Command, ref string) (*client.Client, Jobs, error) {
	api, err := a.NewClient()
	if err != nil || strings.HasPrefix(ref, "job_") {
		return api, Jobs{ID: ref}, err
	}
	found, err := findJobs(cmd.Context(), api, ref)
	found.ID = cmp.Or(found.ID, ref)
	return api, found, err
}

// JobID accepts the name of a job, or NAME[INDEX] of one of an array, where an id is wanted. Of an array with several
// jobs it asks for one of them.
func JobID(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	api, found, err := FindJobs(a, cmd, ref)
	if err != nil || !found.IsArray {
		return api, found.ID, err
	}
	id, err := OnlyJob(cmd.Context(), api, ref, found.ID)
	return api, id, err
}

// findJobs looks among those that are not over, then among all. It finds nothing where there is no such job.
func findJobs(ctx context.Context, api *client.Client, ref string) (Jobs, error) {
	name, index := SplitIndex(ref)
	if !strings.HasPrefix(name, ArrayPrefix) {
		id, err := resolveName(ctx, name, jobsByName(api, index))
		return JobsOf(id), err
	}
	if index == nil {
		return JobsOf(name), nil
	}
	for job, err := range api.Jobs(ctx, client.JobFilter{Array: name, Index: index}) {
		return JobsOf(job.ID), err
	}
	return Jobs{}, nil
}

// SplitIndex takes NAME[7] apart, as lists show a job of an array, or ARRAY_7; index is nil where there is none.
func SplitIndex(ref string) (name string, index *int) {
	m := indexed.FindStringSubmatch(ref)
	if m == nil {
		return ref, nil
	}
	i, _ := strconv.Atoi(m[2] + m[4]) // digits alone, and few of them
	return m[1] + m[3], &i
}

// JobsOf is what an id of a job or an array stands for.
func JobsOf(id string) Jobs { return Jobs{ID: id, IsArray: strings.HasPrefix(id, ArrayPrefix)} }

// largestPage is the largest page of a list that the server gives.
const largestPage = 200

// jobsByName finds jobs by their name; where an array has it, the array stands for them, unless one index is wanted.
func jobsByName(api *client.Client, index *int) namedKind {
	return namedKind{"jobs", func(ctx context.Context, f client.Filter) (found []string, err error) {
		if f.PageSize == 0 {
			f.PageSize = largestPage // an array has thousands
		}
		for job, err := range api.Jobs(ctx, client.JobFilter{Filter: f, Index: index}) {
			if err != nil {
				return nil, err
			}
			id := job.ID
			if job.ArrayID != "" && index == nil {
				id = job.ArrayID
			}
			if !slices.Contains(found, id) {
				found = append(found, id)
			}
			if f.PageSize == 1 {
				break
			}
		}
		return found, nil
	}}
}

// OnlyJob is the job of an array that has no more; of others nobody can say which is meant.
func OnlyJob(ctx context.Context, api *client.Client, ref, array string) (string, error) {
	var first contract.Job
	for job, err := range api.Jobs(ctx, client.JobFilter{Array: array, Filter: client.Filter{PageSize: 2}}) {
		switch {
		case err != nil:
			return "", err
		case first.ID == "":
			first = job
			continue
		}
		return "", &exit.Error{Code: exit.Conflict, Message: fmt.Sprintf("%q is an array of several jobs: name one by its "+
			"index, as '%s[INDEX]', or by its id", ref, ref), Next: []string{"forewarm jobs list --array " + array}}
	}
	if first.ID == "" {
		return array, nil // which the server does not know either
	}
	return first.ID, nil
}

// SessionAllocationID accepts what AllocationID does, and the id of a job, an array of one job, or NAME[INDEX], for the
// allocation that this has now.
func SessionAllocationID(a *app.App, cmd *cobra.Command, ref string) (*client.Client, string, error) {
	if !strings.HasPrefix(ref, "job_") && !strings.HasPrefix(ref, ArrayPrefix) && !indexed.MatchString(ref) {
		return AllocationID(a, cmd, ref)
	}
	api, id, err := JobID(a, cmd, ref)
	if err != nil {
		return api, id, err
	}
	job, err := api.Job(cmd.Context(), id)
	if err == nil && job.AllocationID == "" {
		err = &exit.Error{Code: exit.Conflict, Message: fmt.Sprintf("%s is %s: it has no GPUs now", id, job.State),
			Next: []string{"forewarm jobs explain " + id}}
	}
	return api, job.AllocationID, err
}
