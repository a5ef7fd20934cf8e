package slurm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Get returns one machine. What Slurm has forgotten is answered from memory, as
// Terminated, for a day.
func (c *Cluster) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	found, err := c.findJob(ctx, id)
	if provisioners.KindOf(err) == provisioners.KindNotFound {
		return c.answerDeparted(ctx, id)
	}
	if err != nil {
		return provisioners.Instance{}, err
	}
	settled := c.cancelSurplus(ctx, []job{found})
	_ = c.memory.rememberJobs(settled) // see view.unsaved
	instances, err := c.withNotices(ctx, settled)
	if err != nil {
		return provisioners.Instance{}, err
	}
	return instances[0], nil
}

// findJob asks for one job. KindNotFound means that Slurm does not know it, or
// knows another one by its number.
func (c *Cluster) findJob(ctx context.Context, id string) (job, error) {
	number, mark, ok := parseID(id)
	if !ok {
		return job{}, notFoundError(id)
	}
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "squeue", "--noheader", "--states=all",
		"--jobs="+number,
		"--Format="+formatColumns(jobColumns))
	if err != nil {
		return job{}, fmt.Errorf("looking for job %s: %w", number, err)
	}
	v := c.parseJobs(output)
	for _, j := range v.jobs {
		if strconv.Itoa(j.id) == number && j.mark == mark {
			return j, nil
		}
	}
	for _, strange := range v.strange {
		if strange == mark {
			return job{}, provisioners.Errorf(provisioners.KindUnknown, "job %s is not understood", number)
		}
	}
	if !v.whole {
		return job{}, provisioners.Errorf(provisioners.KindTransient, "squeue's answer for job %s is cut", number)
	}
	return job{}, notFoundError(id)
}

// answerDeparted answers a machine whose job Slurm has forgotten.
func (c *Cluster) answerDeparted(ctx context.Context, id string) (provisioners.Instance, error) {
	o, known := c.memory.byID(id)
	if !known {
		return provisioners.Instance{}, notFoundError(id)
	}
	if o.Ended.IsZero() {
		end := c.accountedEnd(ctx, o)
		o.Ended, o.Preempted = end.end, end.preempted
	}
	_ = c.memory.rememberGone(o) // see view.unsaved
	return o.portInstance(), nil
}

// List returns the owner's machines, those included that ended in the last
// minutes.
func (c *Cluster) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	v, err := c.listJobs(ctx)
	if err != nil {
		return provisioners.List{}, err
	}
	var theirs []job
	for _, j := range v.jobs {
		if j.tags.owner == owner {
			theirs = append(theirs, j)
		}
	}
	instances, err := c.withNotices(ctx, theirs)
	if err != nil {
		return provisioners.List{}, err
	}
	return provisioners.List{Instances: instances, Complete: v.isComplete()}, nil
}

// Delete cancels the job, with all that runs inside of it: Slurm sends SIGTERM
// and, after its KillWait, SIGKILL.
func (c *Cluster) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	found, err := c.findJob(ctx, id)
	if provisioners.KindOf(err) == provisioners.KindNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if found.hasEnded() {
		_ = c.memory.rememberJobs([]job{found}) // see view.unsaved
		return nil
	}
	return c.cancelJob(ctx, found.id)
}

func (c *Cluster) cancelJob(ctx context.Context, id int) error {
	_, err := c.askSlurm(ctx, provisioners.KindUnknown, "", "scancel", strconv.Itoa(id))
	if err != nil && provisioners.KindOf(err) != provisioners.KindNotFound {
		return fmt.Errorf("cancelling job %d: %w", id, err)
	}
	return nil
}

// renewals is how often Renew writes before it gives up: another Renew with an
// earlier time may write at the same moment.
const renewals = 3

// Renew writes the new time into the job's name, where the placeholder reads it
// when the old one has come. It needs no rights but the owner's, which moving
// the time limit would.
func (c *Cluster) Renew(ctx context.Context, id string, until time.Time) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	for range renewals {
		found, err := c.findJob(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case found.hasEnded():
			return notFoundError(id)
		case found.expires.IsZero(), found.expires.Unix() >= until.Unix():
			return nil
		}
		_, err = c.askSlurm(ctx, provisioners.KindUnknown, "", "scontrol", "update",
			"JobId="+strconv.Itoa(found.id), "JobName="+jobName(found.mark, until))
		if err != nil {
			return fmt.Errorf("renewing job %d: %w", found.id, err)
		}
	}
	return provisioners.Errorf(provisioners.KindUnknown, "the time of machine %q was written and did not stay", id)
}
