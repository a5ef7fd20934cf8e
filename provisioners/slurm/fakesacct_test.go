package slurm_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// crowd is the jobs of a busy cluster that wait, which nothing starts.
func (w *world) crowd() []*fakeJob {
	jobs := make([]*fakeJob, w.Elastic.Crowd)
	for i := range jobs {
		jobs[i] = &fakeJob{ID: 1_000_000 + i, User: "bob", Name: "sweep", Partition: "gpu", Gres: "gpu:a100", GPUs: 1,
			Submitted: w.Now, State: "PENDING",
			elasticJob: elasticJob{Account: "speech", Reason: "Priority", Count: 1, CPUs: 1}}
	}
	return jobs
}

// runSacct prints the jobs that were there in the span, as sacct --parsable does. Where
// there is no accounting it knows nothing: its real output was recorded, see
// recorded_test.go.
func (w *world) runSacct(options map[string]string) reply {
	if !w.Elastic.Accounts {
		return complain("Slurm accounting storage is disabled")
	}
	if w.takeFault("sacct down") {
		return complain("sacct: error: Sending PersistInit msg: Connection refused")
	}
	from, until := w.ago(options["starttime"]), w.ago(options["endtime"])
	var out strings.Builder
	for _, j := range append(slices.Clone(w.Elastic.Past), w.Jobs...) {
		if user, one := options["user"]; one && user != j.User || j.Submitted.After(until) ||
			j.isOver() && j.Ended.Before(from) {
			continue
		}
		row := w.accountedRow(j)
		for name := range strings.SplitSeq(options["format"], ",") {
			out.WriteString(row[name] + options["delimiter"])
		}
		out.WriteString("\n")
	}
	return reply{out: out.String()}
}

// ago reads now-60seconds; nothing is now.
func (w *world) ago(text string) time.Time {
	number := strings.TrimSuffix(strings.TrimPrefix(text, "now-"), "seconds")
	seconds, _ := strconv.Atoi(number)
	return w.Now.Add(-time.Duration(seconds) * time.Second)
}

func (w *world) accountedRow(j *fakeJob) map[string]string {
	row := w.elasticRow(j)
	return map[string]string{
		"JobIDRaw": row["JobID"], "JobID": row["JobArrayID"], "State": row["State"], "User": j.User, "Account": j.Account,
		"Partition": j.Partition, "Submit": row["SubmitTime"], "Eligible": row["EligibleTime"], "Start": row["StartTime"],
		"End": row["EndTime"], "NodeList": row["NodeList"], "NNodes": row["NumNodes"], "JobName": j.Name,
		"AllocTRES": fmt.Sprintf("cpu=%d,gres/gpu=%d", j.CPUs, j.GPUs*max(1, j.Count)), "ReqTRES": "cpu=1",
	}
}
