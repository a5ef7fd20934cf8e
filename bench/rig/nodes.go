package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// AddNodes writes n ready nodes of the pool with their GPUs, before anything is served, and
// returns their ids.
func (i *Installation) AddNodes(ctx context.Context, n int) (made []string, err error) {
	store, _, err := openLedger(ctx, i.URL, 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = store.InTx(ctx, func(tx ledger.Tx) error {
		made = nil
		p, err := tx.Pool(PoolName)
		if err != nil {
			return fmt.Errorf("reading the pool: %w", err)
		}
		var nodes []node.Node
		for slot := range n {
			one := node.New(ids.UUID{}.New(ids.Node), p.ID, slot, 1, tx.Now())
			for _, e := range []node.Event{node.Provision, node.Boot, node.BecomeReady} {
				if one, err = one.Apply(e, "", tx.Now()); err != nil {
					return err
				}
			}
			one.Token, one.ProviderID, one.Simulated = one.ID, one.ID, true
			for g := range PerNode {
				one.Devices = append(one.Devices, capacity.Device{UUID: GPUName(one.ID, g), Index: g, Model: model,
					MemoryMiB: 81_920})
			}
			nodes, made = append(nodes, one), append(made, one.ID)
		}
		return tx.Save(ledger.Change{Nodes: nodes})
	})
	return made, err
}

// GPUName is the UUID of a GPU of a node that AddNodes wrote.
func GPUName(nodeID string, index int) string { return fmt.Sprintf("GPU-SIM-%s-%d", nodeID, index) }

// Resident is how much memory a process has in use, in bytes; 0 where that cannot be read.
func Resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// Memory is how much memory the process has in use, in bytes.
func (p *Process) Memory() int64 { return Resident(p.cmd.Process.Pid) }
