package simcluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Bounds of a cluster: it is computed anew whenever somebody looks.
const (
	maxNodes  = 1024 // of one offer
	maxGPUs   = 1024 // of one node
	minPeriod = time.Second
)

// Validate returns every mistake in the config, each with its field, the rule and the
// fix.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name)}
	if c.SuspendTime < 0 {
		mistakes = append(mistakes, fmt.Errorf("suspend_time: %v is negative; write 0 for nodes that stay up",
			c.SuspendTime))
	}
	if len(c.Offers) == 0 {
		mistakes = append(mistakes, errors.New("offers: want at least one; leave the key out for the default"))
	}
	seen := map[string]bool{}
	for i, offer := range c.Offers {
		if seen[offer.Type] {
			mistakes = append(mistakes, fmt.Errorf("offers[%d].type: %q is there twice; give each offer its own", i,
				offer.Type))
		}
		seen[offer.Type] = true
		if err := offer.validateFields(); err != nil {
			mistakes = append(mistakes, fmt.Errorf("offers[%d].%w", i, err))
		}
	}
	clear(seen)
	for i, work := range c.Work {
		if seen[work.Name] {
			mistakes = append(mistakes, fmt.Errorf("work[%d].name: %q is there twice; give each its own, for jobs are "+
				"told apart by it", i, work.Name))
		}
		seen[work.Name] = true
		if err := c.validateWork(work); err != nil {
			mistakes = append(mistakes, fmt.Errorf("work[%d].%w", i, err))
		}
	}
	return errors.Join(mistakes...)
}

func (o Offer) validateFields() error {
	switch {
	case o.Type == "":
		return errors.New("type: is empty; name the kind of node")
	case o.Model == "":
		return errors.New("model: is empty; name the GPU, such as a100-80g")
	case o.GPUs < 1 || o.GPUs > maxGPUs:
		return fmt.Errorf("gpus: %d is not between 1 and %d", o.GPUs, maxGPUs)
	case o.MemoryMiB < 0:
		return fmt.Errorf("memory_mib: %d is negative", o.MemoryMiB)
	case o.Price < 0:
		return fmt.Errorf("price_per_hour: %d is negative", o.Price)
	case o.Nodes < 1 || o.Nodes > maxNodes:
		return fmt.Errorf("nodes: %d is not between 1 and %d", o.Nodes, maxNodes)
	case o.Boot.P50 <= 0 || o.Boot.P95 < o.Boot.P50:
		return fmt.Errorf("boot: want 0 < p50 <= p95, have p50 %v, p95 %v", o.Boot.P50, o.Boot.P95)
	}
	return nil
}

func (c Config) validateWork(w Work) error {
	switch {
	case w.Every < minPeriod:
		return fmt.Errorf("every: %v is shorter than %v; say how often it is submitted, such as 24h", w.Every, minPeriod)
	case w.At < 0 || w.At >= w.Every:
		return fmt.Errorf("at: %v is not within the period of %v; say how far into it, from 0", w.At, w.Every)
	case w.Jitter < 0 || w.Jitter >= w.Every:
		return fmt.Errorf("jitter: %v is not between 0 and the period of %v; a job comes once in each", w.Jitter, w.Every)
	}
	return c.validateJob(w.Job)
}

func (c Config) validateJob(j Job) error {
	offer, found := c.findOffer(j.Type)
	switch {
	case provisioners.CheckName(j.Name) != nil:
		return provisioners.CheckName(j.Name)
	case !found:
		return fmt.Errorf("type: no offer is of type %q; name one of them", j.Type)
	case j.Nodes < 1 || j.Nodes > offer.Nodes:
		return fmt.Errorf("nodes: %d is not between 1 and the %d of type %q: it would wait for ever", j.Nodes,
			offer.Nodes, j.Type)
	case j.CPUOnly && j.GPUs != 0:
		return fmt.Errorf("gpus: %d, and cpu_only says that it uses none; write one of them", j.GPUs)
	case !j.CPUOnly && j.GPUs < 1 || j.GPUs > offer.GPUs:
		return fmt.Errorf("gpus: %d is not between 1 and the %d of a node of type %q: it would wait for ever", j.GPUs,
			offer.GPUs, j.Type)
	case j.Length < minPeriod:
		return fmt.Errorf("length: %v is shorter than %v; say how long it runs, such as 2h", j.Length, minPeriod)
	}
	return nil
}
