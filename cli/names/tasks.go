package names

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
)

// several is NAME[1-3,7] or ARRAY[1-3,7], or ARRAY_[1-3,7], as users of Slurm write it.
var several = regexp.MustCompile(`^(?:(` + ArrayPrefix + `[^_]+)_|(.+))\[(\d[-\d,]*[-,][-\d,]*)\]$`)

// FindAllJobs is FindJobs, and accepts NAME[1-3,7] for several jobs of an array, of which each has to be there.
func FindAllJobs(a *app.App, cmd *cobra.Command, ref string) ([]Jobs, error) {
	m := several.FindStringSubmatch(ref)
	if m == nil {
		_, found, err := FindJobs(a, cmd, ref)
		return []Jobs{found}, err
	}
	wanted, err := parseTasks(m[3])
	if err != nil {
		return nil, exit.UsageErrorf(cmd.CommandPath()+" --help", "%s: %v", flags.Quote(ref), err)
	}
	api, found, err := FindJobs(a, cmd, m[1]+m[2])
	if err != nil {
		return nil, err
	}
	return tasksOf(cmd.Context(), api, ref, found, wanted)
}

// tasksOf are the jobs of an array with the indices that are wanted, in the order of these.
func tasksOf(ctx context.Context, api *client.Client, ref string, of Jobs, wanted []int) ([]Jobs, error) {
	ids := map[int]string{}
	if of.IsArray {
		for job, err := range api.Jobs(ctx, client.JobFilter{Array: of.ID, Filter: client.Filter{PageSize: largestPage}}) {
			if err != nil {
				return nil, err
			}
			if job.ArrayIndex != nil {
				ids[*job.ArrayIndex] = job.ID
			}
		}
	}
	var all []Jobs
	for _, index := range wanted {
		id, ok := ids[index]
		if !ok {
			return nil, &exit.Error{Code: exit.NotFound, Message: fmt.Sprintf("%s: there is no job of the index %d in an "+
				"array of this id or name; nothing was changed", flags.Quote(ref), index),
				Next: []string{"forewarm jobs list --all"}}
		}
		all = append(all, JobsOf(id))
	}
	return all, nil
}

// mostTasks is how many jobs an array may have.
const mostTasks = 10_000

// parseTasks reads indices and ranges of them, with commas between.
func parseTasks(text string) (all []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(cmp.Or(last, first), 10, 31)
		switch {
		case err1 != nil || err2 != nil || ranged && last == "":
			return nil, errors.New("write indices and ranges of them, as in [1-3,7]")
		case to < from:
			return nil, fmt.Errorf("%s: a range begins with the smaller index", part)
		case to-from >= mostTasks || len(all)+int(to-from) >= mostTasks:
			return nil, fmt.Errorf("an array has at most %d jobs", mostTasks)
		}
		for i := from; i <= to; i++ {
			all = append(all, int(i)) //nolint:gosec // 31 bits
		}
	}
	return all, nil
}
