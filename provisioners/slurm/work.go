package slurm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// workRow is a job of the cluster's users as squeue or sacct shows it, before it is
// known what its nodes are.
type workRow struct {
	work      provisioners.Work
	job       string // the number, without task and component
	own       bool   // it is one of ours
	state     string
	partition []string
	hosts     []string
	nodes     int
	tasks     int
	cpus      int
	exclusive bool
	perNode   int // GPUs it asked for of each node; 0: it asked in another way
}

// workColumns are asked of squeue. Nothing that a user writes for people is among them,
// neither name nor comment: whose job it is that is ours, beatView knows by its number.
var workColumns = []string{
	"JobID", "JobArrayID", "State", "Reason", "UserName", "Account", "Partition", "SubmitTime", "EligibleTime",
	"StartTime", "EndTime", "NodeList", "NumNodes", "NumTasks", "tres-alloc", "tres-per-job", "tres-per-node",
	"tres-per-task", "OverSubscribe", "NumCPUs",
}

// parseWorkRow reads one row of squeue.
func parseWorkRow(row []string) (workRow, error) {
	r := workRow{job: row[0], state: row[2], partition: strings.Split(row[6], ","), exclusive: row[18] == "NO"}
	r.work = provisioners.Work{User: row[4], Account: knownName(row[5]), Queue: r.partition[0]}
	var errs [6]error
	r.work.SubmittedAt, errs[0] = parseInstant(row[7])
	r.work.EligibleAt, errs[1] = parseInstant(row[8])
	started, err := parseInstant(row[9])
	errs[2] = err
	ended, err := parseInstant(row[10])
	errs[3] = err
	r.nodes, errs[4] = strconv.Atoi(row[12])
	r.tasks, _ = strconv.Atoi(row[13])
	r.cpus, _ = strconv.Atoi(row[19])
	r.hosts, errs[5] = expandHosts(knownName(row[11]), r.nodes)
	if err := errors.Join(errs[:]...); err != nil || r.work.SubmittedAt.IsZero() {
		return workRow{}, fmt.Errorf("job %.20q: %w", row[0], errors.Join(err, errors.New("it is not understood")))
	}
	r.perNode = countGres(row[16])
	r.work.GPUs = r.askedGPUs(row[14], row[15], row[17])
	r.work.ID = workID(row[0], row[1], r.work.SubmittedAt)
	return r, r.setTimes(row[3], started, ended)
}

// matters reports whether the row can tell anything: of GPUs, or of a node's processors.
func (r workRow) matters() bool {
	return r.work.GPUs > 0 || r.exclusive || len(r.hosts) > 0 && !phaseIsOver(r.state)
}

// workID is the job's number, or its array's and the task's, and when it was queued: a
// job that is queued again keeps its number, and gets another time. The tasks of an array
// that Slurm has not told apart yet are one: none of them has a place.
func workID(job, array string, submitted time.Time) string {
	if base, task, isArray := strings.Cut(array, "_"); isArray {
		if strings.HasPrefix(task, "[") {
			task = "*"
		}
		job = base + "_" + task
	}
	return job + "@" + strconv.FormatInt(submitted.Unix(), 10)
}

// setTimes sets what the state makes of the times. A job that waits for the boot of its
// nodes has a start already, which Slurm moves when it really starts.
func (r *workRow) setTimes(reason string, started, ended time.Time) error {
	phase, known := phases[r.state]
	switch {
	case !known:
		return fmt.Errorf("job %s: state %.40q", r.job, r.state)
	case r.state == "CONFIGURING":
		r.work.Waiting = provisioners.WaitBoot
	case phase == provisioners.Booting:
		r.work.Waiting = reasonOf(reason)
	case phase == provisioners.Running:
		r.work.StartedAt = started
	default:
		r.work.EndedAt = ended
		if len(r.hosts) > 0 {
			r.work.StartedAt = started
		}
	}
	return nil
}

func knownName(text string) string {
	switch strings.ToLower(text) {
	case "n/a", "(null)", "none", "none assigned", "unknown":
		return ""
	}
	return text
}

// askedGPUs is how many GPUs the job has or wants.
func (r workRow) askedGPUs(allocated, perJob, perTask string) int {
	if n := trackedGPUs(allocated); n > 0 {
		return n
	}
	if n := countGres(perJob); n > 0 {
		return n
	}
	if n := countGres(perTask); n > 0 {
		return n * max(1, r.tasks)
	}
	return r.perNode * max(1, r.nodes)
}

var trackedTres = regexp.MustCompile(`(?:^|,)gres/gpu=(\d+)`)

// trackedGPUs reads "cpu=1,gres/gpu=4", which says it only where
// AccountingStorageTRES does.
func trackedGPUs(tres string) int {
	found := trackedTres.FindStringSubmatch(tres)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// countGres reads "gres:gpu:a100:4", and newer releases' "gres/gpu:a100:4" and
// "gres/gpu=4". A resource without a number counts one.
func countGres(text string) int {
	total := 0
	for item := range strings.SplitSeq(inBrackets.ReplaceAllString(text, ""), ",") {
		item = strings.TrimPrefix(strings.TrimPrefix(item, "gres:"), "gres/")
		parts := strings.FieldsFunc(item, func(r rune) bool { return r == ':' || r == '=' })
		if len(parts) == 0 || parts[0] != "gpu" {
			continue
		}
		n, err := strconv.Atoi(parts[len(parts)-1])
		if err != nil {
			n = 1
		}
		total += n
	}
	return total
}

// reasonOf sorts Slurm's reasons for a job that waits.
func reasonOf(reason string) provisioners.Reason {
	word := strings.ToLower(strings.NewReplacer("_", "", " ", "").Replace(reason))
	has := func(starts ...string) bool {
		return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(word, s) })
	}
	switch {
	case has("resources", "reqnodenotavail", "nodesrequired", "nodedown", "licenses", "reservation", "burstbuffer"):
		return provisioners.WaitResources
	case has("priority"):
		return provisioners.WaitPriority
	case has("dependency", "jobheld", "held", "begintime", "launchfailed", "jobhold"):
		return provisioners.WaitDependencies
	case has("qos", "assoc", "max", "grp", "partition", "jobarraytasklimit", "accountnotallowed", "invalid",
		"accountingpolicy", "deadline"):
		return provisioners.WaitLimits
	}
	return provisioners.WaitOther
}

// placeOn gives the work its offer and what it has of each of its nodes.
func (r *workRow) placeOn(offers []Offer, nodes map[string]elasticNode) {
	if r.exclusive {
		r.fillNodes(nodes)
	}
	left := r.work.GPUs
	for i, host := range r.hosts {
		share := r.perNode
		if share == 0 { // an even share, and what is left over on the first ones
			share = (left + len(r.hosts) - i - 1) / (len(r.hosts) - i)
		}
		left -= share
		r.work.Nodes = append(r.work.Nodes, provisioners.WorkNode{Name: host, GPUs: share})
	}
	for _, o := range offers {
		node, placed := elasticNode{}, false
		if len(r.hosts) > 0 {
			node, placed = nodes[r.hosts[0]]
		}
		if slices.Contains(r.partition, o.Partition) && (!placed || node.canServe(o)) {
			r.work.Type = o.Type
			return
		}
	}
}

// fillNodes gives an exclusive job all GPUs of its nodes, as Slurm does.
func (r *workRow) fillNodes(nodes map[string]elasticNode) {
	whole := 0
	for _, host := range r.hosts {
		whole += countResource(nodes[host].gres, "gpu")
	}
	if whole > 0 {
		r.work.GPUs, r.perNode = whole, whole/len(r.hosts)
	}
}
