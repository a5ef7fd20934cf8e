package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// finding is why a node must not be used, by what its daemon says; without evidence nothing speaks against it.
type finding struct {
	reason, evidence string
	told             string // what holders are told
}

// passDaemon reports whether a booting node that is up may be ready as far as its daemon goes. One whose daemon has yet
// to report is looked at again soon; one of which it finds a GPU unhealthy, or the driver too old, is given up.
func passDaemon(tx *txn.Tx, g ledger.Guard, p *txn.PoolTx, n node.Node, devices []capacity.Device) (bool, error) {
	if !tx.Config.AwaitDaemons && p.Pool.MinDriver == "" {
		return true, nil
	}
	d, err := tx.Port.Daemon(n.ID)
	if errors.Is(err, ledger.ErrNotFound) { // none is to come
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading daemon: %w", err)
	}
	said, err := lastPresence(tx, n.ID)
	if err != nil {
		return false, err
	}
	look := readLook(said.Look)
	if d.JoinedAt.IsZero() || said.SeenAt.Before(d.JoinedAt) || p.Pool.MinDriver != "" && !look.tellsDriver() {
		tx.FailTask(g, tx.Now().Add(tx.Config.CheckEvery), "")
		return false, nil
	}
	against := oldDriver(look.realDriver(), p.Pool.MinDriver)
	if against.evidence == "" {
		against = unhealthyGPUs(node.Node{Devices: devices}, look.unhealthy())
	}
	if against.evidence == "" {
		return true, nil
	}
	tx.AddEvent(ledger.Event{Type: "node.unfit", Subject: n.ID, PoolID: p.Pool.ID, Reason: against.reason,
		Message: "its daemon found before it was ready: " + ledger.ClipText(against.evidence, 300)})
	return false, giveUpBoot(tx, p, n, g, against.reason)
}

// findingAgainst is why a ready node has to be taken out of use, by what its daemon reports.
func findingAgainst(tx *txn.Tx, known ledger.DaemonState, b ledger.Beat) (finding, error) {
	if known.Node.State() != node.Ready || b.Clears < known.Daemon.Clears {
		return finding{}, nil
	}
	if old := oldDriver(b.Driver, known.MinDriver); old.evidence != "" || len(b.Unhealthy) == 0 {
		return old, nil
	}
	n, err := tx.Port.Node(known.Node.ID)
	if err != nil {
		return finding{}, fmt.Errorf("reading the GPUs of node: %w", err)
	}
	return unhealthyGPUs(n, b.Unhealthy), nil
}

// oldDriver finds a driver that is older than a pool's demand. One that is not known is not.
func oldDriver(is, least capacity.Driver) finding {
	if is == "" || is.AtLeast(least) {
		return finding{}
	}
	return finding{reason: ledger.ReasonOldDriver, told: "its driver is older than its pool demands",
		evidence: fmt.Sprintf("its driver is %s, and its pool demands %s or newer", is, least)}
}

// unhealthyGPUs is what was found against GPUs that the node has. Others say nothing of it: they
// are simulated, or were taken out of the machine.
func unhealthyGPUs(n node.Node, found []ledger.UnhealthyGPU) finding {
	var all []string
	for _, g := range found {
		if slices.ContainsFunc(n.Devices, func(d capacity.Device) bool { return capacity.GPUOf(d.UUID) == g.UUID }) {
			all = append(all, g.Finding)
		}
	}
	return finding{reason: ledger.ReasonUnhealthyGPU, evidence: strings.Join(all, "; "), told: "a GPU there is unhealthy"}
}

// quarantineFound takes a node out of use because of what its daemon found. It
// changes nothing on one that takes no new work anyway. Whoever holds its GPUs keeps them,
// as an operator's quarantine lets them, until an operator resumes or drains the node; where
// nobody does, its machine is replaced.
func quarantineFound(ctx context.Context, e *txn.Engine, nodeID string, f finding) error {
	return onNode(ctx, e, nodeID, func(tx *txn.Tx, p *txn.PoolTx, n node.Node) error {
		return quarantineFor(tx, p, n, f.reason, ledger.ClipText(f.evidence, 300), f.told)
	})
}

// saidLook is what a boot is judged by, of what a daemon said.
type saidLook struct {
	Source string          `json:"source"`
	Driver capacity.Driver `json:"driver"`
	GPUs   []struct {
		UUID     string `json:"uuid"`
		Health   string `json:"health"`
		Evidence []struct {
			Detail string `json:"detail"`
		} `json:"evidence"`
	} `json:"gpus"`
}

// readLook reads what a daemon said. What cannot be read is of a later version, which tells in its reports, too.
func readLook(text []byte) (l saidLook) {
	if json.Unmarshal(text, &l) != nil {
		return saidLook{}
	}
	return l
}

// simulatedLook is the source of figures that are not real.
const simulatedLook = "simulated"

// tellsDriver reports whether a look says which driver there is, or that there is none.
func (l saidLook) tellsDriver() bool { return l.Source == simulatedLook || l.Driver.Valid() }

// realDriver is the driver of GPUs that are not simulated; empty: it is not known.
func (l saidLook) realDriver() capacity.Driver {
	if l.Source == simulatedLook {
		return ""
	}
	return l.Driver
}

// unhealthy are the GPUs that must not be handed out.
func (l saidLook) unhealthy() (all []ledger.UnhealthyGPU) {
	for _, g := range l.GPUs {
		if g.Health != "unhealthy" {
			continue
		}
		why := []string{"GPU " + g.UUID + " is unhealthy"}
		for _, e := range g.Evidence {
			why = append(why, e.Detail)
		}
		all = append(all, ledger.UnhealthyGPU{UUID: g.UUID, Finding: strings.Join(why, ": ")})
	}
	return all
}
