package ledgermetrics

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

const (
	// silentAfter is how old what a daemon said may be and still count, as in package telemetry.
	silentAfter = 90 * time.Second
	// mostDevices bounds the number of series: of more GPUs, the rest has none.
	mostDevices = 16_384
)

var (
	daemons = newGauge("node_daemons", "Ready and draining nodes by their daemon: online, silent, or none.",
		"pool", "state")
	gpuUse = newGauge("gpu_utilization_ratio", "Share of the time in which something ran on the GPU.",
		"pool", "node", "gpu", "uuid")
	gpuMemory      = newGauge("gpu_memory_used_bytes", "Memory of the GPU in use.", "pool", "node", "gpu", "uuid")
	gpuTemperature = newGauge("gpu_temperature_celsius", "Temperature of the GPU.", "pool", "node", "gpu", "uuid")
	gpuPower       = newGauge("gpu_power_watts", "Power that the GPU draws.", "pool", "node", "gpu", "uuid")
	gpuUnhealthy   = newGauge("gpu_unhealthy", "1 while the node's daemon finds the GPU unhealthy, else 0.",
		"pool", "node", "gpu", "uuid")
)

// said is what is counted of a look.
type said struct {
	GPUs []struct {
		UUID        string   `json:"uuid"`
		Index       int      `json:"index"`
		Health      string   `json:"health"`
		Utilization *int     `json:"utilization_percent"`
		MemoryMiB   *int     `json:"memory_used_mib"`
		Temperature *int     `json:"temperature_celsius"`
		Power       *float64 `json:"power_watts"`
	} `json:"gpus"`
}

// readPresences reads what daemons said lately, by node, and which of them are silent.
func (l *readLevels) readPresences(r ledger.Reader) error {
	all, err := r.Presences(r.Now().Add(-24 * time.Hour))
	if err != nil {
		return fmt.Errorf("reading what daemons said: %w", err)
	}
	l.presences = map[string]ledger.Presence{}
	for _, p := range all {
		l.presences[p.NodeID] = p
	}
	return nil
}

// takeDaemons tells of the daemons of a pool, and of the GPUs of those that report.
func (l *readLevels) takeDaemons(s ledger.PoolState, now time.Time) {
	byState := map[string]int{}
	for _, n := range s.Nodes {
		if n.State() != node.Ready && n.State() != node.Draining && n.State() != node.Quarantined {
			continue
		}
		p, found := l.presences[n.ID]
		switch {
		case !found:
			byState["none"]++
		case now.Sub(p.SeenAt) > silentAfter:
			byState["silent"]++
		default:
			byState["online"]++
			l.takeLook(s.Pool.Name, p)
		}
	}
	l.addStates(daemons, s.Pool.Name, byState, "online", "silent", "none")
}

func (l *readLevels) takeLook(pool string, p ledger.Presence) {
	var look said
	if json.Unmarshal(p.Look, &look) != nil {
		return
	}
	told := map[string]bool{} // a series that is told twice would take all metrics away
	for _, g := range look.GPUs {
		if l.devices++; l.devices > mostDevices {
			return
		}
		if told[g.UUID] {
			continue
		}
		told[g.UUID] = true
		labels := []string{pool, p.NodeID, strconv.Itoa(g.Index), g.UUID}
		add := func(gauge gauge, value *float64) {
			if value != nil {
				l.metrics = append(l.metrics, gauge.withValue(*value, labels...))
			}
		}
		add(gpuUse, scaled(g.Utilization, 0.01))
		add(gpuMemory, scaled(g.MemoryMiB, 1<<20))
		add(gpuTemperature, scaled(g.Temperature, 1))
		add(gpuPower, g.Power)
		l.addLevel(gpuUnhealthy, boolToInt(g.Health == "unhealthy"), labels...)
	}
}

// scaled is a figure in another unit; nil: there is none.
func scaled(v *int, by float64) *float64 {
	if v == nil {
		return nil
	}
	out := float64(*v) * by
	return &out
}
