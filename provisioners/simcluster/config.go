package simcluster

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

// Config describes one simulated cluster.
type Config struct {
	Name string `yaml:"name"`
	// Region is that of all offers. Default "sim-1".
	Region string `yaml:"region"`
	// Seed decides every boot time and every jitter.
	Seed   uint64  `yaml:"seed"`
	Offers []Offer `yaml:"offers"`
	// SuspendTime is after how long without work, and without a Keep, a node goes cold;
	// 0 means never. Observation.KeepWithin is a third of it.
	SuspendTime time.Duration `yaml:"suspend_time"`
	// StateFile keeps the cluster across restarts, as a real one would be kept.
	// Empty means memory only. One process at a time may use a file.
	StateFile string `yaml:"state_file"`
	Work      []Work `yaml:"work"`
}

// Offer is a kind of node of the cluster.
type Offer struct {
	Type      string             `yaml:"type"`
	Model     string             `yaml:"model"`
	GPUs      int                `yaml:"gpus"`
	MemoryMiB int                `yaml:"memory_mib"` // of one GPU
	Price     provisioners.Price `yaml:"price_per_hour"`
	Boot      Boot               `yaml:"boot"`
	Nodes     int                `yaml:"nodes"` // how many there are
}

// Boot is a log-normal distribution of boot times, given by two of its quantiles.
type Boot struct {
	P50 time.Duration `yaml:"p50"`
	P95 time.Duration `yaml:"p95"`
}

// Work is a job that somebody submits again and again.
type Work struct {
	Job `yaml:",inline"`
	// Every is how often. Periods are counted from a Monday, 00:00 UTC.
	Every time.Duration `yaml:"every"`
	// At is how far into each period it is submitted: 9h of every 24h is 09:00 UTC.
	At time.Duration `yaml:"at"`
	// Jitter is by how much later than that it comes at most, evenly drawn.
	Jitter time.Duration `yaml:"jitter"`
}

// Job is what a user of the cluster submits: a gang of equal parts, one on each of its
// nodes, which start together or not at all.
type Job struct {
	Name      string        `yaml:"name"` // its id is this and a number
	Account   string        `yaml:"account"`
	User      string        `yaml:"user"`
	Namespace string        `yaml:"namespace"`
	Queue     string        `yaml:"queue"`
	Type      string        `yaml:"type"`  // of an offer; default: the first
	Nodes     int           `yaml:"nodes"` // default 1
	GPUs      int           `yaml:"gpus"`  // on each node; default: all, or none with CPUOnly
	Length    time.Duration `yaml:"length"`
	// CPUOnly jobs use no GPU. They are no work that an observation tells of, but the
	// nodes that they are on are taken.
	CPUOnly bool `yaml:"cpu_only"`
	// Exclusive jobs share their nodes with no other.
	Exclusive bool `yaml:"exclusive"`
}

// WithDefaults returns the config with every unset field set. Without offers it has one:
// 4 nodes of 8×A100 that boot in 4 minutes, 9 at the 95th percentile.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = "simcluster"
	}
	if c.Region == "" {
		c.Region = "sim-1"
	}
	if c.Offers == nil {
		c.Offers = []Offer{{
			Type: "sim-a100-8", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920, Nodes: 4,
			Price: provisioners.Price(20 * money.USD), Boot: Boot{P50: 4 * time.Minute, P95: 9 * time.Minute},
		}}
	}
	work := make([]Work, len(c.Work))
	for i, w := range c.Work {
		w.Job = c.completeJob(w.Job)
		work[i] = w
	}
	c.Work = work
	return c
}

// completeJob sets what a job leaves unset.
func (c Config) completeJob(j Job) Job {
	if j.Type == "" && len(c.Offers) > 0 {
		j.Type = c.Offers[0].Type
	}
	if j.Nodes == 0 {
		j.Nodes = 1
	}
	if offer, found := c.findOffer(j.Type); found && j.GPUs == 0 && !j.CPUOnly {
		j.GPUs = offer.GPUs
	}
	return j
}

func (c Config) findOffer(name string) (Offer, bool) {
	for _, offer := range c.Offers {
		if offer.Type == name {
			return offer, true
		}
	}
	return Offer{}, false
}

func (o Offer) portOffer(region string) provisioners.Offer {
	return provisioners.Offer{
		Type: o.Type, Region: region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(o.Price), Boot: provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95},
		Simulated: true, Observed: true,
	}
}
