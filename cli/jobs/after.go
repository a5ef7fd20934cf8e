package jobs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/contract"
)

// conditions are what a job can wait for of another one.
var conditions = []string{"after", "afterok", "afternotok", "afterany", "aftercorr"}

// findDependencies reads JOB or JOB:CONDITION, where a job or an array has its id or its name.
func (r *request) findDependencies(a *app.App, cmd *cobra.Command) ([]contract.JobDependency, error) {
	var all []contract.JobDependency
	for _, text := range r.after {
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
		d.JobID = named.ID
		all = append(all, d)
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
