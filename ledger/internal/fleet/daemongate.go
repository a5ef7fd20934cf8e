package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// passDaemon reports whether a booting node that is up may be ready as far as its daemon goes. One whose daemon has yet
// to report is looked at again soon; one of which it finds a GPU unhealthy is given up.
func passDaemon(tx *txn.Tx, g ledger.Guard, p *txn.PoolTx, n node.Node, devices []capacity.Device) (bool, error) {
	if !tx.Config.AwaitDaemons {
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
	if d.JoinedAt.IsZero() || said.SeenAt.Before(d.JoinedAt) {
		tx.FailTask(g, tx.Now().Add(tx.Config.CheckEvery), "")
		return false, nil
	}
	evidence := findingsOf(node.Node{Devices: devices}, unhealthyIn(said.Look))
	if evidence == "" {
		return true, nil
	}
	tx.AddEvent(ledger.Event{Type: "node.unfit", Subject: n.ID, PoolID: p.Pool.ID, Reason: ledger.ReasonUnhealthyGPU,
		Message: "its daemon found before it was ready: " + ledger.ClipText(evidence, 300)})
	return false, giveUpBoot(tx, p, n, g, ledger.ReasonUnhealthyGPU)
}

// unhealthyIn are the GPUs that must not be handed out, of what a daemon said.
func unhealthyIn(look []byte) (all []ledger.UnhealthyGPU) {
	var said struct {
		GPUs []struct {
			UUID     string `json:"uuid"`
			Health   string `json:"health"`
			Evidence []struct {
				Detail string `json:"detail"`
			} `json:"evidence"`
		} `json:"gpus"`
	}
	if json.Unmarshal(look, &said) != nil { // of a later version; it tells in its reports, too
		return nil
	}
	for _, g := range said.GPUs {
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
