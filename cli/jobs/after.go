package jobs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// conditions are what a job can wait for of another one.
var conditions = []string{"after", "afterok", "afternotok", "afterany", "aftercorr"}

// findDependencies reads JOB or JOB:CONDITION, where a job or an array has its id or its name.
func (r *request) findDependencies(a *app.App, cmd *cobra.Command) ([]contract.JobDependency, error) {
	var all []contract.JobDependency
	for _, text := range r.after {
		if text == singleton {
			earlier, err := r.findNamesakes(a, cmd)
			if err != nil {
				return nil, err
			}
			all = append(all, earlier...)
			continue
		}
		ref, d := text, contract.JobDependency{}
		for _, c := range conditions {
			if before, ok := strings.CutSuffix(text, ":"+c); ok {
				ref, d.Condition = before, c
			}
		}
		_, named, err := names.FindJobs(a, cmd, ref)
		if err != nil {
			return nil, err
		}
		if _, condition, more := strings.Cut(ref, ":"); more && named.ID == ref {
			return nil, wrongUse("--after %s: there is no such job, and %q is no condition: write one of %s", text, condition,
				strings.Join(conditions, ", "))
		}
		if named.ID == ref && !strings.HasPrefix(ref, "job_") && !strings.HasPrefix(ref, names.ArrayPrefix) {
			return nil, &exit.Error{Code: exit.NotFound, Message: "--after " + flags.Quote(ref) +
				": there is no job or array of this id or name, or your key may not see it",
				Next: []string{"forewarm jobs list --all"}}
		}
		d.JobID = named.ID
		all = append(all, d)
	}
	return all, nil
}

// singleton has a job wait for those of the same name that its person submitted before.
const singleton = "singleton"

// mostNamesakes is how many jobs one may wait for.
const mostNamesakes = 100

// findNamesakes are the jobs that a singleton waits for: what is submitted at the same moment may be missed.
func (r *request) findNamesakes(a *app.App, cmd *cobra.Command) (all []contract.JobDependency, err error) {
	switch {
	case r.in.Name == "":
		return nil, wrongUse("--after singleton: give it the name that only one of your jobs may have at a time, by --name")
	case r.array != "":
		return nil, wrongUse("--after singleton: the jobs of an array have one name; --array %s%%1 runs one at a time",
			r.array)
	}
	api, err := a.NewClient()
	if err != nil {
		return nil, err
	}
	for x, err := range api.Jobs(cmd.Context(), client.JobFilter{Filter: client.Filter{Name: r.in.Name}, Mine: true}) {
		if err != nil {
			return nil, err
		}
		id := cmp.Or(x.ArrayID, x.ID)
		if slices.ContainsFunc(all, func(d contract.JobDependency) bool { return d.JobID == id }) {
			continue
		}
		if all = append(all, contract.JobDependency{JobID: id, Condition: "afterany"}); len(all) > mostNamesakes {
			return nil, wrongUse("--after singleton: more than %d of your jobs called %s wait or run, and a job waits "+
				"for %[1]d", mostNamesakes, r.in.Name)
		}
	}
	return all, nil
}

func (r *request) findReservation(a *app.App, cmd *cobra.Command) (string, error) {
	if r.reservation == "" {
		return "", nil
	}
	_, id, err := names.ReservationID(a, cmd, r.reservation)
	if err == nil && !strings.HasPrefix(id, "rsv_") {
		err = wrongUse("--reservation %s: there is none of that name: forewarm reservations list", r.reservation)
	}
	return id, err
}
