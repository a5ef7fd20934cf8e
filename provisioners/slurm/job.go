package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

// job is one placeholder as squeue shows it.
type job struct {
	id                            int
	state, reason                 string
	phase                         provisioners.Phase
	preempted, submitted, endTime time.Time
	node                          string
	mark                          string
	expires                       time.Time // zero: never
	tags                          tags
	found                         report
}

var jobColumns = []column{
	{"JobID", 20}, {"State", 30}, {"Reason", 100}, {"PreemptTime", 24}, {"SubmitTime", 24}, {"EndTime", 24},
	{"NodeList", 256}, {"Name", 64}, {"Comment", mostComment + 1},
}

// phases sorts Slurm's states of a job. RUNNING is Booting until the probe has
// passed.
var phases = map[string]provisioners.Phase{
	"PENDING": provisioners.Booting, "CONFIGURING": provisioners.Booting, "REQUEUED": provisioners.Booting,
	"REQUEUE_FED": provisioners.Booting, "REQUEUE_HOLD": provisioners.Booting, "RESV_DEL_HOLD": provisioners.Booting,
	"SPECIAL_EXIT": provisioners.Booting,
	"RUNNING":      provisioners.Running, "RESIZING": provisioners.Running, "SIGNALING": provisioners.Running,
	"SUSPENDED": provisioners.Running, "STOPPED": provisioners.Running,
	"COMPLETING": provisioners.Terminating, "STAGE_OUT": provisioners.Terminating,
	"BOOT_FAIL": provisioners.Terminated, "CANCELLED": provisioners.Terminated, "COMPLETED": provisioners.Terminated,
	"DEADLINE": provisioners.Terminated, "FAILED": provisioners.Terminated, "LAUNCH_FAILED": provisioners.Terminated,
	"NODE_FAIL": provisioners.Terminated, "OUT_OF_MEMORY": provisioners.Terminated,
	"PREEMPTED":     provisioners.Terminated,
	"RECONFIG_FAIL": provisioners.Terminated, "REVOKED": provisioners.Terminated, "TIMEOUT": provisioners.Terminated,
}

// view is what one squeue showed of our jobs.
type view struct {
	jobs []job
	// whole says that the output ended where it should.
	whole bool
	// strange are the marks of jobs that look like ours and were not understood.
	strange []string
	// unsaved is why the memory of it could not be written. Reading goes on: a
	// full disk must not keep machines from being found and ended.
	unsaved error
}

func (v view) isComplete() bool { return v.whole && len(v.strange) == 0 }

// parseJobs reads the output of squeue. Jobs of the same user that are not
// placeholders, and those of other provisioners, are nobody's business.
func (c *Cluster) parseJobs(output string) view {
	table, whole := cutRows(output, len(jobColumns))
	v := view{whole: whole}
	for _, row := range table {
		name := namePattern.FindStringSubmatch(row[7])
		if name == nil {
			continue
		}
		tags, provisioner, found, err := parseComment(row[8])
		if err == nil && provisioner != c.config.Name {
			continue
		}
		j := job{state: row[1], reason: row[2], node: row[6], mark: name[1], tags: tags, found: found}
		if err = errors.Join(err, c.parseTypedFields(&j, row, name[2])); err != nil {
			v.strange = append(v.strange, name[1])
			continue
		}
		v.jobs = append(v.jobs, j)
	}
	return v
}

// parseTypedFields reads the fields that can be wrong.
func (c *Cluster) parseTypedFields(j *job, row []string, expires string) error {
	var errs [5]error
	j.id, errs[0] = strconv.Atoi(row[0])
	j.preempted, errs[1] = parseInstant(row[3])
	j.submitted, errs[2] = parseInstant(row[4])
	j.endTime, errs[3] = parseInstant(row[5])
	j.expires, errs[4] = parseInstant(expires)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	var known bool
	j.phase, known = phases[j.state]
	switch {
	case !known:
		return fmt.Errorf("state %.40q", j.state)
	case j.submitted.IsZero():
		return errors.New("no time of submission")
	case j.mark != c.config.tokenMark(j.tags.token):
		return errors.New("the name is not that of the comment's token")
	}
	if j.phase == provisioners.Running && len(j.found.devices) == 0 {
		j.phase = provisioners.Booting
	}
	return nil
}

func (j job) hasEnded() bool {
	return j.phase == provisioners.Terminating || j.phase == provisioners.Terminated
}

// takenBack reports whether Slurm ended the job for another one.
func (j job) takenBack() bool {
	return j.state == "PREEMPTED" || j.hasEnded() && !j.preempted.IsZero()
}

// preemptionLook is how soon a machine is looked at again that others may take:
// what Slurm ends without a GraceTime is announced by nothing.
const preemptionLook = 10 * time.Second

// portInstance is the machine, without what its node says.
func (c *Cluster) portInstance(j job) provisioners.Instance {
	instance := provisioners.Instance{
		ID: instanceID(j.id, j.mark), Token: j.tags.token, Owner: j.tags.owner, NodeID: j.tags.node, Type: j.tags.kind,
		Phase: j.phase, CreatedAt: j.submitted, Preempted: j.takenBack(),
	}
	switch j.phase {
	case provisioners.Running:
		instance.Address = access.Address{Kind: access.Slurm, Host: j.node, Job: fmt.Sprint(j.id)}.String()
		instance.Devices = c.devicesOf(j)
		if offer, _ := c.config.findOffer(j.tags.kind); offer.Interruptible {
			instance.CheckWithin = preemptionLook
		}
	case provisioners.Terminated:
		instance.EndedAt = j.endTime
	}
	return instance
}
