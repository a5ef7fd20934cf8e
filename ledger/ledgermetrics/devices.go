package ledgermetrics

import (
	"encoding/json"
	"fmt"
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

var daemons = newGauge("node_daemons", "Ready and draining nodes by their daemon: online, silent, or none.",
	"pool", "state")

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
	// A series that is told twice would take all metrics away.
	told, whole := map[string]bool{}, map[string]bool{"": true}
	for _, g := range look.GPUs {
		if l.devices++; l.devices > mostDevices {
			return
		}
		if told[g.UUID] {
			continue
		}
		told[g.UUID] = true
		l.metrics = append(l.metrics, g.metrics(pool, p.NodeID)...)
		if !whole[g.Parent] {
			whole[g.Parent] = true
			l.metrics = append(l.metrics, g.wholeMetrics(pool, p.NodeID)...)
		}
	}
}
