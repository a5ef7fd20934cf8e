package simcluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/provisioners"
)

// stateVersion changes when an older program could misread the file.
const stateVersion = 1

type state struct {
	Version       int
	At, Forgotten time.Time
	Submitted     int64
	Nodes         []*node
	Jobs, Ended   []*job
	Keepings      []*keeping
}

// saveState makes all that was computed so far durable. After a failure it is unknown
// what a restart would find, so the caller must not answer success.
func (c *Cluster) saveState() error {
	if c.config.StateFile == "" || !c.dirty {
		return nil
	}
	saved := state{Version: stateVersion, At: c.at, Forgotten: c.forgotten, Submitted: c.submitted, Nodes: c.nodes,
		Jobs: c.jobs, Ended: c.ended, Keepings: slices.Collect(maps.Values(c.keepings))}
	slices.SortFunc(saved.Keepings, func(a, b *keeping) int { return cmp.Compare(a.ID, b.ID) })
	if err := statefile.Write(c.config.StateFile, saved); err != nil {
		return &provisioners.Error{Kind: provisioners.KindUnknown, Message: "saving the simulated cluster", Err: err}
	}
	c.dirty = false
	return nil
}

func (c *Cluster) loadState() error {
	if c.config.StateFile == "" {
		return nil
	}
	var saved state
	found, err := statefile.Read(c.config.StateFile, &saved)
	if err != nil || !found {
		return err
	}
	if saved.Version != stateVersion {
		return fmt.Errorf("state file %s has version %d, this program reads %d", c.config.StateFile, saved.Version,
			stateVersion)
	}
	if err := saved.check(); err != nil {
		return fmt.Errorf("state file %s is damaged: %w", c.config.StateFile, err)
	}
	c.at, c.forgotten, c.submitted, c.ended, c.dirty = saved.At, saved.Forgotten, saved.Submitted, saved.Ended, false
	c.restoreNodes(saved.Nodes)
	c.restoreKeepings(saved.Keepings)
	c.restoreJobs(saved.Jobs)
	return nil
}

// check finds what no cluster has written.
func (s state) check() error {
	if s.At.IsZero() {
		return errors.New("it has no time")
	}
	for _, n := range s.Nodes {
		if n == nil || n.Name == "" || !slices.Contains([]power{cold, powering, up}, n.Power) {
			return errors.New("a node without a name or a known power")
		}
	}
	for _, j := range slices.Concat(s.Jobs, s.Ended) {
		if j == nil || j.ID == "" || j.Submitted.IsZero() {
			return errors.New("a job without an id or a time")
		}
	}
	for _, k := range s.Keepings {
		if k == nil || k.ID == "" || k.Token == "" || k.Born.IsZero() {
			return errors.New("an instance without id, token or birth")
		}
	}
	return nil
}

// restoreNodes gives the configured nodes what is known of them. The configuration may
// have changed: nodes that are not in it any more are gone.
func (c *Cluster) restoreNodes(saved []*node) {
	for _, s := range saved {
		if n := c.findNode(s.Name); n != nil {
			n.Power, n.ReadyAt, n.Active, n.Changed = s.Power, s.ReadyAt, s.Active, s.Changed
		}
	}
}

func (c *Cluster) restoreKeepings(saved []*keeping) {
	for _, k := range saved {
		c.keepings[k.Token] = k
		if !k.Ended.IsZero() {
			continue
		}
		if n := c.findNode(k.Node); n != nil {
			n.kept = k
		} else {
			k.Ended, c.dirty = c.at, true
		}
	}
}

// restoreJobs restores jobs in their order. One that lost a node, or cannot be run any
// more as it is configured now, ends.
func (c *Cluster) restoreJobs(saved []*job) {
	for _, j := range saved {
		if c.config.validateJob(j.Job) != nil || slices.ContainsFunc(j.On, func(name string) bool {
			n := c.findNode(name)
			return n == nil || n.Power == cold || !n.fits(j)
		}) {
			j.Ended, c.dirty = c.at, true
			c.ended = append(c.ended, j)
			continue
		}
		c.jobs = append(c.jobs, j)
		for _, name := range j.On {
			c.findNode(name).give(j)
		}
	}
}
