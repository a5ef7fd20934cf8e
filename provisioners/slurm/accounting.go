package slurm

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// sacctFields are asked of accounting, which keeps jobs for as long as its
// operator likes. The comment is not among them: it is stored only where
// AccountingStoreFlags says so, and the name holds the mark of the token.
var sacctFields = []string{"JobIDRaw", "State", "Submit", "End", "JobName"}

// ended is a job as accounting knows it.
type ended struct {
	id             int
	mark           string
	submitted, end time.Time
	preempted      bool
}

// findAccounted answers the token's ended machine from accounting, where there is
// some: the memory that all processes share. Its tags are those of the asked
// spec, which alone the name cannot be held against.
func (c *Cluster) findAccounted(ctx context.Context, token string,
	spec provisioners.Spec) (provisioners.Instance, bool, error) {
	if !c.config.Accounting {
		return provisioners.Instance{}, false, nil
	}
	output, err := c.runSacct(ctx, "--starttime=now-"+strconv.Itoa(int(tokenMemory.Hours()))+"hours")
	if err != nil {
		return provisioners.Instance{}, false, err
	}
	mark := c.config.tokenMark(token)
	jobs, err := parseAccounting(output)
	if err != nil {
		return provisioners.Instance{}, false, &provisioners.Error{Kind: provisioners.KindTransient,
			Message: "reading sacct", Err: err}
	}
	for _, j := range jobs { // in the order of their numbers: the oldest first
		if j.mark == mark && !j.end.IsZero() {
			return provisioners.Instance{
				ID: instanceID(j.id, mark), Token: token, Owner: spec.Owner, NodeID: spec.NodeID, Type: spec.Type,
				Phase: provisioners.Terminated, CreatedAt: j.submitted, EndedAt: j.end, Preempted: j.preempted,
			}, true, nil
		}
	}
	return provisioners.Instance{}, false, nil
}

// accountedEnd is how the machine ended, zero when nobody knows.
func (c *Cluster) accountedEnd(ctx context.Context, o memo) ended {
	number, mark, ok := parseID(o.ID)
	if !ok || !c.config.Accounting {
		return ended{}
	}
	output, err := c.runSacct(ctx, "--jobs="+number)
	if err != nil {
		return ended{} // the end itself is known; the caller estimates when it was
	}
	jobs, err := parseAccounting(output)
	for _, j := range jobs {
		if err == nil && j.mark == mark {
			return j
		}
	}
	return ended{}
}

func (c *Cluster) runSacct(ctx context.Context, filter string) (string, error) {
	return c.askSlurm(ctx, provisioners.KindTransient, "", "sacct", "--noheader", "--parsable2", "--allocations",
		"--duplicates",
		"--delimiter="+separator, filter, "--format="+strings.Join(sacctFields, ","))
}

// parseAccounting reads sacct's rows, which end with their last field and not
// with a separator. Jobs that are none of ours are left out.
func parseAccounting(output string) ([]ended, error) {
	var jobs []ended
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimRight(line, "\n"), separator)
		if len(fields) != len(sacctFields) {
			continue // another job's name with a line break
		}
		name := namePattern.FindStringSubmatch(fields[4])
		if name == nil {
			continue
		}
		j, err := parseEnded(fields, name[1])
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// parseEnded reads a row of sacctFields.
func parseEnded(fields []string, mark string) (ended, error) {
	j := ended{mark: mark, preempted: fields[1] == "PREEMPTED"}
	var errs [3]error
	j.id, errs[0] = strconv.Atoi(fields[0])
	j.submitted, errs[1] = parseInstant(fields[2])
	j.end, errs[2] = parseInstant(fields[3])
	return j, errors.Join(errs[:]...)
}
