package simcluster

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// power is whether a node can be used.
type power string

const (
	cold     power = "cold"
	powering power = "powering_up"
	up       power = "up"
)

// node is one node of the cluster.
type node struct {
	Name    string
	Power   power
	ReadyAt time.Time // while it powers up: when it is up
	// Active is from when it has been without anything that keeps it up.
	Active time.Time
	// Changed is when it last changed between work and none; zero: it never had work.
	Changed time.Time

	offer Offer
	jobs  int      // that were given it
	taken int      // GPUs of these
	whole bool     // one of them wants it for itself
	kept  *keeping // nil: it is not in keeping
}

// addNodes makes the nodes of all offers, cold.
func (c *Cluster) addNodes() {
	for _, offer := range c.config.Offers {
		for i := range offer.Nodes {
			c.nodes = append(c.nodes, &node{Name: fmt.Sprintf("%s-%d", offer.Type, i+1), Power: cold, offer: offer})
		}
	}
}

func (c *Cluster) findNode(name string) *node {
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// powerUp has a cold node boot.
func (c *Cluster) powerUp(n *node) {
	if n.Power == cold {
		n.Power, n.ReadyAt = powering, c.at.Add(c.config.drawBoot(n.offer.Boot, n.Name, c.at))
	}
}

// fits reports whether there is room for a part of the job.
func (n *node) fits(j *job) bool {
	free := n.jobs == 0 || !j.Exclusive && !n.whole
	return n.offer.Type == j.Type && free && n.offer.GPUs-n.taken >= j.GPUs
}

// give gives the node to a part of a job.
func (n *node) give(j *job) {
	n.jobs, n.taken, n.whole = n.jobs+1, n.taken+j.GPUs, j.Exclusive
}

// giveTo gives the node to a part of a job at the time, and takeFrom takes it back.
func (n *node) giveTo(j *job, at time.Time) {
	n.give(j)
	if n.Active = at; n.jobs == 1 {
		n.Changed = at
	}
}

func (n *node) takeFrom(j *job, at time.Time) {
	n.jobs, n.taken, n.whole = n.jobs-1, n.taken-j.GPUs, false
	if n.Active = at; n.jobs == 0 {
		n.Changed = at
	}
}

func (n *node) idle() bool { return n.Power == up && n.jobs == 0 }

// suspendedAt is when the node goes cold if nothing comes between; false means that
// nothing in sight lets it.
func (c *Cluster) suspendedAt(n *node) (time.Time, bool) {
	return n.Active.Add(c.config.SuspendTime), n.idle() && c.config.SuspendTime > 0
}

// suspend lets a node go cold. Nobody keeps it any more.
func (c *Cluster) suspend(n *node) {
	n.Power, n.ReadyAt = cold, time.Time{}
	if n.kept != nil {
		n.kept.Ended, n.kept = c.at, nil
	}
}

// listDevices lists the GPUs of the node.
func (c Config) listDevices(n *node) []capacity.Device {
	devices := make([]capacity.Device, n.offer.GPUs)
	for i := range devices {
		devices[i] = capacity.Device{UUID: c.deviceUUID(n.Name, i), Index: i, Model: n.offer.Model,
			MemoryMiB: n.offer.MemoryMiB}
	}
	return devices
}

// portNode is the node as an observation shows it.
func (n *node) portNode() provisioners.ObservedNode {
	seen := provisioners.ObservedNode{Name: n.Name, Types: []string{n.offer.Type}, GPUs: n.offer.GPUs,
		GPUsTaken: n.taken, Since: n.Changed, State: provisioners.NodeTaken}
	switch {
	case n.Power == cold:
		seen.State = provisioners.NodeCold
	case n.Power == powering:
		seen.State = provisioners.NodePoweringUp
	case n.jobs == 0:
		seen.State = provisioners.NodeIdle
	}
	if n.kept != nil {
		seen.InstanceID = n.kept.ID
	}
	return seen
}
