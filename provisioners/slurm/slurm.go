// Package slurm holds GPUs of a Slurm cluster with placeholder jobs.
//
// A machine is a batch job that takes GPUs of one node and does nothing but hold
// them; work runs inside of its allocation (srun --jobid=N --overlap). Slurm's
// own power saving boots a node without power for it, as for any job. The job
// reports its GPUs itself, in its comment, when its probe has passed, and ends by
// itself when it was not renewed in time and no step runs beside it.
//
// Everything is done with Slurm's commands, by any user of the cluster, here or
// through a prefix such as ssh. The job's comment and name are the truth. What
// Slurm forgets of ended jobs is kept in a state file.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Cluster is one user's part of a Slurm cluster. It is safe for concurrent use.
type Cluster struct {
	commands
	config Config
	clock  clock.Clock
	memory *memory
	// turn lets one Create at a time look and submit, so that the second sees what
	// the first has made, and counts it.
	turn chan struct{}
}

var (
	_ provisioners.Provisioner   = (*Cluster)(nil)
	_ provisioners.DaemonStarter = (*Cluster)(nil)
	_ provisioners.Renewer       = (*Cluster)(nil)
)

// New opens the cluster. It fails on a bad config and on a damaged state file;
// Slurm itself is first asked by the first call.
func New(config Config, clock clock.Clock) (*Cluster, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring Slurm cluster %q: %w", config.Name, err)
	}
	memory, err := openMemory(config.StateFile, clock)
	if err != nil {
		return nil, fmt.Errorf("opening Slurm cluster %q: %w", config.Name, err)
	}
	return &Cluster{commands: newCommands(config), config: config, clock: clock, memory: memory,
		turn: make(chan struct{}, 1)}, nil
}

// Name returns the configured name.
func (c *Cluster) Name() string { return c.config.Name }

// StartsDaemons reports whether placeholders run the daemon of their node.
func (c *Cluster) StartsDaemons() bool { return c.config.Daemon.Program != "" }

// Offers lists the configured offers whose partition has a node for them, busy
// or not. The error is KindBadSpec when there is none at all.
func (c *Cluster) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	partitions := map[string]bool{}
	for _, o := range c.config.Offers {
		partitions[o.Partition] = true
	}
	var offers []provisioners.Offer
	var missing []error
	for partition := range partitions {
		nodes, err := c.listNodes(ctx, "--partition="+partition)
		if err != nil {
			return nil, err
		}
		found, err := c.servedOffers(ctx, partition, nodes)
		if provisioners.KindOf(err) == provisioners.KindBadSpec {
			missing = append(missing, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		offers = append(offers, found...)
	}
	if len(offers) == 0 {
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "no partition has a node for any offer: %v",
			errors.Join(missing...))
	}
	slices.SortFunc(offers, func(a, b provisioners.Offer) int { return strings.Compare(a.Type, b.Type) })
	return offers, nil
}

// servedOffers are the offers of a partition for which it has nodes, or hides some.
func (c *Cluster) servedOffers(ctx context.Context, partition string, nodes []node) ([]provisioners.Offer, error) {
	hidden, err := c.countHiddenNodes(ctx, partition, nodes)
	if provisioners.KindOf(err) == provisioners.KindCapacity { // closed for now, and still what it is
		hidden, err = 0, nil
	}
	if err != nil {
		return nil, err
	}
	var offers []provisioners.Offer
	for _, o := range c.config.Offers {
		if o.Partition == partition && (hidden > 0 ||
			slices.ContainsFunc(nodes, func(n node) bool { return n.canHold(o) })) {
			offers = append(offers, o.portOffer(c.config.Region))
		}
	}
	return offers, nil
}

// listJobs asks for all of our jobs that Slurm still knows, and puts right what must
// not stay: see settle.
func (c *Cluster) listJobs(ctx context.Context) (view, error) {
	begun := c.clock.Now()
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "squeue", "--me", "--noheader", "--states=all",
		"--Format="+formatColumns(jobColumns))
	if err != nil {
		return view{}, fmt.Errorf("listing jobs: %w", err)
	}
	v := c.parseJobs(output)
	v.jobs = c.cancelSurplus(ctx, v.jobs)
	err = c.memory.rememberJobs(v.jobs)
	if err == nil && v.isComplete() {
		err = c.memory.endUnlisted(begun, func(id string) bool {
			return slices.ContainsFunc(v.jobs, func(j job) bool { return instanceID(j.id, j.mark) == id })
		})
	}
	v.unsaved = err
	return v, nil
}

// cancelSurplus ends jobs that wait for a node for too long, and all but the oldest of
// a token, which two processes have made at the same moment. The latter are left
// out: nobody was ever told of them. What could not be ended is tried again at
// the next look.
func (c *Cluster) cancelSurplus(ctx context.Context, jobs []job) []job {
	slices.SortFunc(jobs, func(a, b job) int { return a.id - b.id })
	tokens := map[string]bool{}
	kept := jobs[:0]
	for _, j := range jobs {
		younger := tokens[j.tags.token]
		tokens[j.tags.token] = true
		if (younger || c.isOverdue(j)) && !j.hasEnded() && c.cancelJob(ctx, j.id) == nil {
			j.phase = provisioners.Terminating
		}
		if !younger {
			kept = append(kept, j)
		}
	}
	return kept
}

// isOverdue reports whether the job waits for a node for too long. A node that
// boots is Slurm's to give up, by its ResumeTimeout.
func (c *Cluster) isOverdue(j job) bool {
	return j.phase == provisioners.Booting && j.state != "CONFIGURING" && j.state != "RUNNING" &&
		c.clock.Now().Sub(j.submitted) > c.config.PendingTimeout
}

// notFoundError is the KindNotFound of a machine.
func notFoundError(id string) error {
	return provisioners.Errorf(provisioners.KindNotFound, "no machine %q", truncateText(id))
}
