package simcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Submit submits a job now and returns its id. It fails on a job that could never start.
func (c *Cluster) Submit(j Job) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(context.Background()); err != nil {
		return "", err
	}
	j = c.config.completeJob(j)
	if err := c.config.validateJob(j); err != nil {
		return "", fmt.Errorf("submitting a job: %w", err)
	}
	c.submitted++
	id := fmt.Sprintf("%s-s%d", j.Name, c.submitted)
	c.addJob(id, j)
	c.scheduleJobs()
	return id, c.saveState()
}

// Cancel ends a job now, as its user or its own end would. It fails where no such job
// waits or runs.
func (c *Cluster) Cancel(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(context.Background()); err != nil {
		return err
	}
	i := slices.IndexFunc(c.jobs, func(j *job) bool { return j.ID == id })
	if i < 0 {
		return errors.New("no job " + id + " waits or runs")
	}
	c.endJob(c.jobs[i])
	c.jobs = slices.Delete(c.jobs, i, i+1)
	c.scheduleJobs()
	return c.saveState()
}
