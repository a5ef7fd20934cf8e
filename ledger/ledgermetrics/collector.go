package ledgermetrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
)

const (
	// freshFor is how long what was read is served again: several scrapers, or one
	// that scrapes too often, must not load the database.
	freshFor = 5 * time.Second
	// readWithin bounds one reading, so that a database that hangs does not hang the
	// scrape with it.
	readWithin = 3 * time.Second
	// maxOrganizations bounds the number of series: quotas are shown for as many
	// organizations, the oldest.
	maxOrganizations = 500
)

// gauge describes one number that is read from the ledger.
type gauge struct{ *prometheus.Desc }

func newGauge(name, help string, labels ...string) gauge {
	return gauge{prometheus.NewDesc("forewarm_"+name, help, labels, nil)}
}

// withValue returns the number with its labels' values, in the order of their names.
func (g gauge) withValue(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(g.Desc, prometheus.GaugeValue, value, labels...)
}

var (
	ledgerUp = newGauge("ledger_up",
		"1 while the database answers within 3 s, else 0; the other gauges are absent then.")
	nodes = newGauge("nodes", "Nodes that are not over, by state.", "pool", "state")
	gpus  = newGauge("gpus", "GPUs of nodes that are not over: held, booked, free, coming, or unavailable.",
		"pool", "state")
	recovering = newGauge("pool_recovering", "1 while the pool only reconciles until an operator confirms, else 0.",
		"pool")
	poolGPUs     = newGauge("pool_gpus_limit", "GPUs that the pool may have at most.", "pool")
	reservations = newGauge("reservations", "Reservations that are not over, by state.", "pool", "state")
	allocations  = newGauge("allocations", "Allocations that are not over, by state.", "pool", "state")
	jobs         = newGauge("jobs", "Jobs that are not over, by state.", "pool", "state")
	queueLength  = newGauge("queue_length",
		"What waits: allocations for nodes, reservations for a place, jobs for GPUs, a time or other jobs.", "pool", "queue")
	workloadUsed = newGauge("workload_gpus_used", "GPUs that a workload of a split pool holds now.", "pool",
		"workload")
	workloadLimit = newGauge("workload_gpus_limit", "GPUs of a split pool that are for a workload.", "pool", "workload")
	quotaUsed     = newGauge("quota_gpus_used", "GPUs that an organization holds or is promised now.", "organization")
	quotaLimit    = newGauge("quota_gpus_limit", "GPUs that an organization may hold at once.", "organization")
	taskRows      = newGauge("task_rows", "Rows of work by state.", "state")
	blind         = newGauge("observation_blind_seconds",
		"For how long no look at a cluster's own scheduler was complete; 0 while the last one was.", "provisioner")
	failing = newGauge("tasks_failing",
		"Work that failed three or more times in a row, by kind, and is tried again.", "kind")
	taskLag = newGauge("task_lag_seconds",
		"How long the oldest due task has waited to be done, sent to a queue or not; 0 while none is due.")
)

var gauges = append([]gauge{ledgerUp, nodes, gpus, poolGPUs, recovering, reservations, allocations, jobs,
	queueLength, workloadUsed, workloadLimit, quotaUsed, quotaLimit, taskRows, blind, failing, taskLag, daemons},
	gpuGauges...)

// Collector reads gauges from the ledger when it is scraped, at most once in five
// seconds. Every process shows the same numbers, which are the installation's: take
// their maximum, never their sum. It is safe for concurrent use.
type Collector struct {
	store ledger.Store
	clock clock.Clock

	mu     sync.Mutex // held while reading: scrapers that come together read once
	readAt time.Time
	last   []prometheus.Metric
}

// NewCollector returns a collector that has read nothing yet.
func NewCollector(store ledger.Store, c clock.Clock) *Collector {
	return &Collector{store: store, clock: c}
}

// Describe names every gauge.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, g := range gauges {
		descs <- g.Desc
	}
}

// Collect sends every gauge. While the database does not answer there is only
// forewarm_ledger_up, at 0.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, m := range c.currentMetrics() {
		metrics <- m
	}
}

func (c *Collector) currentMetrics() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if age := now.Sub(c.readAt); c.last != nil && age >= 0 && age < freshFor {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	read := readLevels{}
	if err := c.store.Read(ctx, read.readAll); err != nil {
		read.metrics = []prometheus.Metric{ledgerUp.withValue(0)}
	}
	c.last, c.readAt = read.metrics, now
	return c.last
}
