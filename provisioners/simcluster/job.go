package simcluster

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// job is one job that was submitted.
type job struct {
	ID string
	Job
	Submitted time.Time
	On        []string  // the nodes that it was given; empty while it waits for a place
	Started   time.Time // zero: it has not
	Ended     time.Time // zero: it has not
}

// maxWaiting is how many jobs may wait in the cluster. Where so many do, occurrences of
// recurring work are dropped: a cluster that is given more than it can do would
// otherwise grow without bound.
const maxWaiting = 1000

func (c *Cluster) addJob(id string, j Job) {
	c.jobs, c.dirty = append(c.jobs, &job{ID: id, Job: j, Submitted: c.at}), true
}

// monday is where periods are counted from.
var monday = time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC)

// occursAt is when the work's occurrence of the number is submitted.
func (c Config) occursAt(w Work, number int64) time.Time {
	return monday.Add(time.Duration(number)*w.Every + w.At + c.drawJitter(w, number)).Truncate(time.Microsecond)
}

// nextOccurrence is the first one after the time. Occurrences come in their order, for
// the jitter is shorter than the period.
func (c Config) nextOccurrence(w Work, after time.Time) (number int64, at time.Time) {
	number = int64((after.Sub(monday) - w.At - w.Jitter) / w.Every)
	for {
		if at = c.occursAt(w, number); at.After(after) {
			return number, at
		}
		number++
	}
}

// submitWork submits the occurrences of recurring work after one time and until another,
// between which each has one at most.
func (c *Cluster) submitWork(after, until time.Time) {
	for _, w := range c.config.Work {
		number, at := c.config.nextOccurrence(w, after)
		if !at.After(until) && len(c.jobs) < maxWaiting {
			c.addJob(fmt.Sprintf("%s-%d", w.Name, number), w.Job)
		}
	}
}

// portWork is the job as an observation shows it. waiting is why it waits, where it has
// not been given a place.
func (j *job) portWork(waiting provisioners.Reason) provisioners.Work {
	work := provisioners.Work{ID: j.ID, Account: j.Account, User: j.User, Namespace: j.Namespace, Queue: j.Queue,
		Type: j.Type, GPUs: j.Nodes * j.GPUs, SubmittedAt: j.Submitted, EligibleAt: j.Submitted,
		StartedAt: j.Started, EndedAt: j.Ended}
	for _, name := range j.On {
		work.Nodes = append(work.Nodes, provisioners.WorkNode{Name: name, GPUs: j.GPUs})
	}
	switch {
	case !j.Started.IsZero() || !j.Ended.IsZero():
	case len(j.On) > 0:
		work.Waiting = provisioners.WaitBoot
	default:
		work.Waiting = waiting
	}
	return work
}
