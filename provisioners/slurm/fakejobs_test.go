package slurm_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fakeJob is one job of the fake cluster.
type fakeJob struct {
	ID                                         int
	User, Name, Comment, Script                string
	Partition, Gres, Node                      string
	GPUs                                       int
	Submitted, Started, Preempted, Ends, Ended time.Time
	State                                      string
	Reported                                   bool
	elasticJob
}

const (
	fakeKillWait  = 2 * time.Second
	fakeMinJobAge = 5 * time.Minute
)

func (j *fakeJob) isOver() bool { return !j.Ended.IsZero() }

// advanceJobs brings every job to the world's time.
func (w *world) advanceJobs() {
	for _, j := range w.Jobs {
		w.advanceJob(j)
	}
	w.Jobs = slices.DeleteFunc(w.Jobs, func(j *fakeJob) bool {
		return j.isOver() &&
			w.Now.Sub(j.Ended) > fakeMinJobAge
	})
}

func (w *world) advanceJob(j *fakeJob) {
	if j.isOver() {
		if j.State == "COMPLETING" && w.Now.Sub(j.Ended) >= fakeKillWait {
			j.State = "CANCELLED"
		}
		return
	}
	if j.State == "PENDING" {
		if j.Node = w.placeJob(j); j.Node == "" {
			return
		}
		j.State, j.Started = "CONFIGURING", w.Now
	}
	up := j.Started.Add(w.Boot)
	if !w.Now.Before(up) {
		j.State = "RUNNING"
	}
	if !w.NoReport && j.User == "me" && !j.Reported && !w.Now.Before(up.Add(w.Probe)) {
		j.Reported = true
		j.Comment += j.probeReport()
	}
	if end, set := j.expiryFromName(); set && j.State == "RUNNING" && !w.Now.Before(end) {
		j.endAt("COMPLETED", end)
	} else if !j.Ends.IsZero() && !w.Now.Before(j.Ends) {
		j.endAt("PREEMPTED", j.Ends)
	}
}

func (j *fakeJob) endAt(state string, at time.Time) { j.State, j.Ended, j.Ends = state, at, at }

// expiryFromName reads the name, as the placeholder does.
func (j *fakeJob) expiryFromName() (time.Time, bool) {
	_, text, found := strings.Cut(j.Name, "-x")
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), found && err == nil && strings.HasPrefix(j.Name, "forewarm-")
}

// probeReport is what placeholder.sh adds, if this is one.
func (j *fakeJob) probeReport() string {
	if !strings.Contains(j.Script, "comment='"+j.Comment+"'") {
		return ""
	}
	devices := make([]string, j.GPUs)
	for i := range devices {
		devices[i] = fmt.Sprintf("%d:%s-%d-%d:81559:0", i, j.Node, j.ID, i)
	}
	return "&g=" + strings.Join(devices, ",") + "&m=NVIDIA+A100-SXM4-80GB"
}

func (w *world) placeJob(j *fakeJob) string {
	for _, n := range w.Nodes {
		if n.Partition == j.Partition && n.State == "idle" && n.GPUs-w.usedGPUs(n) >= j.GPUs {
			return n.Name
		}
	}
	return ""
}

func (w *world) usedGPUs(n *fakeNode) int {
	used := 0
	for _, j := range w.Jobs {
		if j.Node == n.Name && (!j.isOver() || j.State == "COMPLETING") {
			used += j.GPUs
		}
	}
	return used
}

func (w *world) runSbatch(options map[string]string) reply {
	refuse := func(text string) reply { return complain("sbatch: error: Batch job submission failed: %s", text) }
	if w.takeFault("sbatch standby") {
		return refuse("Slurm backup controller in standby mode")
	}
	script, err := io.ReadAll(os.Stdin)
	if err != nil || !strings.HasPrefix(string(script), "#!/bin/sh\n") {
		return refuse("This does not look like a batch script")
	}
	gres, count, _ := cutLast(options["gres"])
	gpus, err := strconv.Atoi(count)
	if err != nil {
		return refuse("Invalid generic resource (gres) specification")
	}
	if len(options["comment"]) > 1023 {
		return refuse("Pathname of a file, directory or other parameter too long")
	}
	w.Next++
	j := &fakeJob{ID: w.Next, User: "me", Name: options["job-name"], Comment: options["comment"],
		Script:    string(script),
		Partition: options["partition"], Gres: gres, GPUs: gpus, Submitted: w.Now, State: "PENDING"}
	w.Jobs = append(w.Jobs, j)
	if w.takeFault("sbatch times out") {
		return refuse("Socket timed out on send/recv operation")
	}
	return reply{out: fmt.Sprintln(j.ID)}
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndex(text, ":")
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

func (w *world) runScancel(ids []string) reply {
	if w.takeFault("scancel unreachable") {
		return complain("scancel: error: Kill job error on job id %s: %s", ids[0], unreachable)
	}
	if w.takeFault("scancel ignored") {
		return reply{}
	}
	for _, j := range w.Jobs {
		if !slices.Contains(ids, strconv.Itoa(j.ID)) || j.isOver() {
			continue
		}
		if state := "COMPLETING"; j.State == "PENDING" {
			j.endAt("CANCELLED", w.Now)
		} else {
			j.endAt(state, w.Now)
		}
	}
	if w.takeFault("scancel times out") {
		return complain("scancel: error: Kill job error on job id %s: Socket timed out on send/recv operation", ids[0])
	}
	return reply{}
}

func (w *world) runScontrol(words []string) reply {
	switch {
	case slices.Equal(words[:2], []string{"show", "partition"}):
		total := 0
		for _, n := range w.Nodes {
			if n.Partition == words[2] {
				total++
			}
		}
		if total == 0 {
			return complain("Partition %s not found", words[2])
		}
		return reply{out: fmt.Sprintf("PartitionName=%s AllowGroups=ALL State=UP TotalCPUs=4 TotalNodes=%d "+
			"SelectTypeParameters=NONE\n", words[2], total)}
	case words[0] == "update":
		id, _ := strings.CutPrefix(words[1], "JobId=")
		name, _ := strings.CutPrefix(words[2], "JobName=")
		for _, j := range w.Jobs {
			switch {
			case strconv.Itoa(j.ID) != id:
			case j.isOver():
				return complain("Job has already finished for job %s", id)
			default:
				j.Name = name
			}
		}
		return reply{}
	}
	return complain("invalid keyword: %s", words[0])
}
