package slurm_test

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// elastic is what a fake cluster that boots and suspends its nodes has beside.
type elastic struct {
	On            bool
	Suspend       time.Duration // 0: never, in the partition
	Off           bool          // the cluster's power saving is off
	ResumeTimeout time.Duration
	Round         time.Duration // how often what waited for a boot is launched; 0: at once
	MinJobAge     time.Duration
	Private       string // PrivateData
	Admin         bool   // our user may do what an administrator may
	Until         time.Time
	Resumed       []string // nodes, as often as ResumeProgram was called for them
	Crowd         int      // how many jobs wait that are not in Jobs
	Accounts      bool     // accounting remembers jobs
	Past          []*fakeJob
}

// fakePower is what the power of a node does.
type fakePower struct {
	State    string // up, cold, booting, stopping, down
	At       time.Time
	Busy     time.Time
	Broken   bool // its boot never ends
	Features string
}

// elasticJob is what jobs of an elastic cluster have beside.
type elasticJob struct {
	Account, Reason string
	Hosts           []string // what it was given
	On              string   // the only node that it may have
	Begin           time.Time
	Count, CPUs     int // nodes, and processors on each
	Exclusive       bool
	For             time.Duration // 0: until it is ended
	Requeued        time.Time
	Booted          bool // it waits for a boot, or has
}

const (
	fakeCPUs     = 8
	fakeStopping = 5 * time.Second
	// fakeEstimate is for how long slurmctld expects a job to wait that finds no node.
	fakeEstimate = 10 * time.Minute
)

// advance brings everything to the world's time.
func (w *world) advance() {
	if !w.Elastic.On {
		w.advanceJobs()
		return
	}
	for w.Elastic.Until.Before(w.Now) {
		w.Elastic.Until = w.Elastic.Until.Add(time.Second)
		w.stepElastic(w.Elastic.Until)
	}
	w.stepElastic(w.Now)
	w.Jobs = slices.DeleteFunc(w.Jobs, func(j *fakeJob) bool {
		old := j.isOver() && w.Now.Sub(j.Ended) > w.Elastic.MinJobAge
		if old && w.Elastic.Accounts {
			w.Elastic.Past = append(w.Elastic.Past, j)
		}
		return old
	})
}

func (w *world) stepElastic(now time.Time) {
	for _, n := range w.Nodes {
		w.stepNode(n, now)
	}
	for _, j := range w.Jobs {
		w.stepElasticJob(j, now)
	}
}

func (w *world) stepNode(n *fakeNode, now time.Time) {
	p := &n.Power
	cpus, _ := w.takenOf(n)
	if cpus > 0 {
		p.Busy = now
	}
	switch {
	case p.State == "booting" && !p.Broken && now.Sub(p.At) >= w.Boot:
		p.State, p.At, p.Busy = "up", now, now
	case p.State == "booting" && now.Sub(p.At) >= w.Elastic.ResumeTimeout:
		p.State, p.At = "down", now
	case p.State == "stopping" && now.Sub(p.At) >= fakeStopping:
		p.State, p.At = "cold", now
	case p.State == "up" && cpus == 0 && w.Elastic.Suspend > 0 && now.Sub(p.Busy) > w.Elastic.Suspend:
		p.State, p.At = "stopping", now
	}
}

// takenOf is how many processors and GPUs of a node jobs have.
func (w *world) takenOf(n *fakeNode) (cpus, gpus int) {
	for _, j := range w.Jobs {
		if slices.Contains(j.Hosts, n.Name) && !j.isOver() {
			cpus += j.CPUs
			gpus += j.GPUs
		}
	}
	return cpus, gpus
}

func (w *world) stepElasticJob(j *fakeJob, now time.Time) {
	if j.isOver() {
		return
	}
	if j.State == "PENDING" {
		w.placeElastic(j, now)
	}
	up := true
	for _, host := range j.Hosts {
		state := w.node(host).Power.State
		up = up && state == "up"
		if state == "down" {
			j.endAt("NODE_FAIL", now)
			return
		}
	}
	switch {
	case j.State == "CONFIGURING" && up && (!j.Booted || w.launches(now)):
		j.State, j.Started = "RUNNING", now
	case j.State == "RUNNING" && j.For > 0 && now.Sub(j.Started) >= j.For:
		j.endAt("COMPLETED", now)
	}
}

// launches reports whether it is time to launch what waited for a boot.
func (w *world) launches(now time.Time) bool {
	return w.Elastic.Round == 0 || now.Truncate(w.Elastic.Round).Equal(now.Truncate(time.Second))
}

func (w *world) node(name string) *fakeNode {
	i := slices.IndexFunc(w.Nodes, func(n *fakeNode) bool { return n.Name == name })
	return w.Nodes[i]
}

// placeElastic gives a job that may begin its nodes, those that are up first.
func (w *world) placeElastic(j *fakeJob, now time.Time) {
	if j.Begin.After(now) {
		j.Reason = "BeginTime"
		return
	}
	nodes := slices.Clone(w.Nodes)
	slices.SortStableFunc(nodes, func(a, b *fakeNode) int {
		return cmp.Compare(b2i(a.Power.State != "up"), b2i(b.Power.State != "up"))
	})
	var hosts []string
	for _, n := range nodes {
		cpus, gpus := w.takenOf(n)
		wrong := n.Power.State == "down" || n.Power.State == "stopping" || n.Partition != j.Partition ||
			j.On != "" && j.On != n.Name || j.Exclusive && cpus > 0
		if !wrong && cpus+j.CPUs <= fakeCPUs && gpus+j.GPUs <= n.GPUs && len(hosts) < j.Count {
			hosts = append(hosts, n.Name)
		}
	}
	if len(hosts) < j.Count {
		j.Reason = "Resources"
		return
	}
	j.Hosts, j.Node, j.State, j.Started, j.Reason = hosts, strings.Join(hosts, ","), "CONFIGURING", now, "None"
	for _, host := range hosts {
		j.Booted = j.Booted || w.node(host).Power.State != "up"
		if w.node(host).Power.State == "cold" {
			w.resume(w.node(host), now)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *world) resume(n *fakeNode, now time.Time) {
	n.Power.State, n.Power.At = "booting", now
	w.Elastic.Resumed = append(w.Elastic.Resumed, n.Name)
}

// fakeDelay reads now+30.
func fakeDelay(text string) time.Duration {
	seconds, _ := strconv.Atoi(strings.TrimPrefix(text, "now+"))
	return time.Duration(seconds) * time.Second
}

func (w *world) runElasticSbatch(options map[string]string) reply {
	refuse := func(text string) reply { return complain("sbatch: error: Batch job submission failed: %s", text) }
	if w.takeFault("sbatch standby") {
		return refuse("Slurm backup controller in standby mode")
	}
	script, err := io.ReadAll(os.Stdin)
	if err != nil || string(script) != "#!/bin/sh\nexit 0\n" {
		return refuse("This does not look like a heartbeat")
	}
	if w.takeFault("sbatch limit") {
		return refuse("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)")
	}
	j := w.submitJob(fakeJob{User: "me", Name: options["job-name"], Comment: options["comment"],
		Partition: options["partition"], elasticJob: elasticJob{On: options["nodelist"], CPUs: 1, Count: 1,
			For: time.Second, Begin: w.Now.Add(fakeDelay(options["begin"]))}})
	if w.takeFault("sbatch times out") {
		return refuse("Socket timed out on send/recv operation")
	}
	return reply{out: fmt.Sprintln(j.ID)}
}

func (w *world) submitJob(j fakeJob) *fakeJob {
	w.Next++
	j.ID, j.Submitted, j.State = w.Next, w.Now, "PENDING"
	w.Jobs = append(w.Jobs, &j)
	return &j
}

func (w *world) runElasticScontrol(words []string) (reply, bool) {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, "--") })
	switch {
	case words[0] == "show" && words[1] == "config":
		return reply{out: w.configText()}, true
	case words[0] == "show" && words[1] == "partition" && len(words) == 2:
		own := "GLOBAL"
		if w.Elastic.Suspend == 0 && !w.Elastic.Off {
			own = "INFINITE"
		}
		return reply{out: "PartitionName=gpu State=UP TotalNodes=4 ResumeTimeout=GLOBAL SuspendTime=" + own + "\n" +
			"PartitionName=always State=UP TotalNodes=0 SuspendTime=INFINITE\n"}, true
	case words[0] == "show" && words[1] == "node":
		return w.showNodes(words[2:]), true
	case words[0] == "update" && strings.HasPrefix(words[1], "NodeName="):
		return w.updateNode(strings.TrimPrefix(words[1], "NodeName="), words[2]), true
	case words[0] == "update" && strings.HasPrefix(words[2], "StartTime="):
		return w.updateBegin(strings.TrimPrefix(words[1], "JobId="), strings.TrimPrefix(words[2], "StartTime=")), true
	}
	return reply{}, false
}

func (w *world) updateBegin(id, begin string) reply {
	for _, j := range w.Jobs {
		switch {
		case strconv.Itoa(j.ID) != id:
		case j.isOver():
			return complain("Job has already finished for job %s", id)
		case j.State != "PENDING":
			return complain("Job is no longer pending execution for job %s", id)
		default:
			j.Begin = w.Now.Add(fakeDelay(begin))
		}
	}
	return reply{}
}

func (w *world) updateNode(name, change string) reply {
	if !w.Elastic.Admin {
		return complain("slurm_update error: Invalid user id")
	}
	if n := w.node(name); change == "State=POWER_UP" {
		w.resume(n, w.Now)
	}
	return reply{}
}

func (w *world) configText() string {
	suspend := "INFINITE"
	if !w.Elastic.Off {
		suspend = fmt.Sprintf("%d sec", int(cmp.Or(w.Elastic.Suspend, fakeSuspend).Seconds()))
	}
	return fmt.Sprintf("Configuration data as of %d\nAccountingStorageTRES   = cpu,mem,gres/gpu\n"+
		"MinJobAge               = %d sec\nPrivateData             = %s\n"+
		"SuspendTime             = %s\nSuspendTimeout          = 5 sec\n",
		w.Now.Unix(), int(w.Elastic.MinJobAge.Seconds()), w.Elastic.Private, suspend)
}

func (w *world) showNodes(names []string) reply {
	out, shown := "", 0
	for _, n := range w.Nodes {
		p := n.Power
		if len(names) > 0 && !slices.Contains(strings.Split(names[0], ","), n.Name) ||
			p.State == "cold" && !strings.Contains(w.Elastic.Private, "cloud") {
			continue
		}
		shown++
		cpus, gpus := w.takenOf(n)
		busy := formatSeconds(p.Busy, "Unknown")
		if p.State == "cold" {
			busy = "Unknown"
		}
		out += fmt.Sprintf("NodeName=%s CoresPerSocket=1  CPUAlloc=%d CPUEfctv=8 CPUTot=%d CPULoad=N/A AvailableFeatures=%s "+
			"ActiveFeatures=a100 Gres=%s:%d GresDrain=N/A GresUsed=%s:%d(IDX:N/A) OS=Linux 6.1 State=%s ThreadsPerCore=1 "+
			"Partitions=%s  BootTime=%s SlurmdStartTime=None LastBusyTime=%s CfgTRES=cpu=8 AllocTRES= %s\n",
			n.Name, cpus, fakeCPUs, cmp.Or(p.Features, "(null)"), n.Gres, n.GPUs, n.Gres, gpus, elasticState(p.State, cpus),
			n.Partition, "None", busy, elasticReason(p.State))
	}
	if len(names) > 0 && shown < len(strings.Split(names[0], ",")) {
		return reply{out: out, complaint: "Node " + names[0] + " not found\n", code: 1}
	}
	if len(names) > 0 && w.takeFault("nodes cut") {
		return reply{}
	}
	return reply{out: out}
}

func elasticReason(power string) string {
	if power == "down" {
		return "Reason=ResumeTimeout reached [slurm@2026-03-02T09:00:00]"
	}
	return ""
}

func elasticState(power string, cpus int) string {
	base := "IDLE"
	if cpus > 0 {
		base = "MIXED"
	}
	return map[string]string{
		"up": base + "+CLOUD", "cold": base + "+CLOUD+POWERED_DOWN", "booting": base + "+CLOUD+NOT_RESPONDING+POWERING_UP",
		"stopping": "IDLE+CLOUD+POWERING_DOWN", "down": "DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING",
	}[power]
}

func (w *world) elasticRow(j *fakeJob) map[string]string {
	start := j.Started
	switch {
	case j.State == "PENDING" && j.Reason == "Resources":
		start = j.Begin.Add(fakeEstimate)
	case j.State == "PENDING":
		start = j.Begin
	}
	perNode, sharing := "N/A", "OK"
	if j.GPUs > 0 {
		perNode = fmt.Sprintf("gres:%s:%d", j.Gres, j.GPUs)
	}
	if j.Exclusive {
		sharing = "NO"
	}
	eligible := j.Submitted
	if j.Begin.After(eligible) {
		eligible = j.Begin
	}
	return map[string]string{
		"JobID": strconv.Itoa(j.ID), "JobArrayID": strconv.Itoa(j.ID), "State": j.State, "Reason": cmp.Or(j.Reason, "None"),
		"UserName": j.User, "Account": cmp.Or(j.Account, "(null)"), "Partition": j.Partition,
		"SubmitTime": formatSeconds(j.Submitted, "N/A"), "EligibleTime": formatSeconds(eligible, "N/A"),
		"StartTime": formatSeconds(start, "N/A"), "EndTime": formatSeconds(j.Ended, "N/A"), "NodeList": j.Node,
		"NumNodes": strconv.Itoa(j.Count), "NumTasks": strconv.Itoa(j.Count), "NumCPUs": strconv.Itoa(j.CPUs * j.Count),
		"tres-alloc": "cpu=1,node=1", "tres-per-job": "N/A", "tres-per-node": perNode, "tres-per-task": "N/A",
		"OverSubscribe": sharing, "Name": j.Name, "Comment": orNull(j.Comment),
	}
}
