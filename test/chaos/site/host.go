package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/node/gpu"
)

// Mark begins the names of what holders leave on machines of the rack, before the GPU's UUID.
const Mark = "forewarm-chaos."

// Host is a machine of the rack.
type Host struct {
	ID     string
	Slot   int // where it stands: it calls home through that proxy
	Daemon *Process

	node, token, owner string
	kind               string // the type of machine that was asked for
	seed               string // of its GPUs
	uuids              []string
	dir                string
	created, ended     time.Time // ended is zero while it stands
}

func newHost(id, seed string, slot int, q question, now time.Time) *Host {
	h := &Host{ID: id, Slot: slot, node: q.Spec.NodeID, token: q.Token, owner: q.Spec.Owner, kind: q.Spec.Type,
		seed: seed + "-" + id, created: now.UTC().Truncate(time.Microsecond)} // as exactly as the ledger counts
	gpus := &gpu.Simulated{Seed: h.seed, Count: perNode}
	seen, _ := gpus.Look(context.Background()) // it fails with its context alone
	for _, g := range seen.Look.GPUs {
		h.uuids = append(h.uuids, g.UUID)
	}
	return h
}

// instance is a machine as a script writes it.
type instance struct {
	ID        string     `json:"id"`
	Token     string     `json:"token"`
	Owner     string     `json:"owner"`
	NodeID    string     `json:"node_id"`
	Type      string     `json:"type"`
	Phase     string     `json:"phase"`
	Address   string     `json:"address"`
	Devices   []device   `json:"devices"`
	CreatedAt time.Time  `json:"created_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
}

type device struct {
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	Model     string `json:"model"`
	MemoryMiB int    `json:"memory_mib"`
}

func (h *Host) describe(now time.Time) instance {
	i := instance{ID: h.ID, Token: h.token, Owner: h.owner, NodeID: h.node, Type: h.kind, Phase: "running",
		Address: h.ID + ".invalid", CreatedAt: h.created}
	for n, uuid := range h.uuids {
		i.Devices = append(i.Devices, device{uuid, n, "l4", memory})
	}
	switch {
	case !h.ended.IsZero():
		i.Phase, i.EndedAt = "terminated", &h.ended
	case now.Sub(h.created) < rackBoot:
		i.Phase = "booting"
	}
	return i
}

func (h *Host) bill(now time.Time) Machine {
	m := Machine{ID: h.ID, Node: h.node, From: h.created, To: h.ended, Live: h.ended.IsZero()}
	if m.Live {
		m.To = now
	}
	m.Cost = money.MicroUSD(rackPrice).For(m.To.Sub(m.From))
	return m
}

// startHost brings up the daemon of a machine, as the machine's boot would.
func (s *Site) startHost(h *Host, joinToken string) error {
	h.dir = filepath.Join(s.Dir, "rack", h.ID)
	token := filepath.Join(h.dir, "join-token")
	err := os.MkdirAll(h.dir, 0o755) //nolint:gosec // holders pass through it
	if err == nil {
		err = os.WriteFile(token, []byte(joinToken), 0o600)
	}
	if err != nil {
		return fmt.Errorf("making a place for machine %s: %w", h.ID, err)
	}
	home := fmt.Sprintf("http://127.0.0.1:%d", s.Proxies[DaemonProxy(h.Slot)].Port)
	h.Daemon = &Process{Name: "daemon of " + h.ID, group: s.processes, log: filepath.Join(s.Dir, "daemon-"+h.ID+".log")}
	h.Daemon.command = func() *exec.Cmd {
		//nolint:gosec,noctx // the program under test, which outlives the call that starts it
		cmd := exec.Command(s.NodeBinary, "run", "--url", home, "--node", h.node, "--token-file", token,
			"--state-dir", filepath.Join(h.dir, "state"), "--hold-dir", filepath.Join(h.dir, "holds"), "--shared-user",
			"--simulate", strconv.Itoa(perNode), "--simulate-seed", h.seed, "--log-format", "json")
		cmd.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=2"}
		return cmd
	}
	return h.Daemon.Start()
}

// powerOff ends the machine and all that is on it, if that has not happened.
func (h *Host) powerOff(now time.Time) error {
	if !h.ended.IsZero() {
		return nil
	}
	h.Daemon.Retire()
	err := killWorkOn(h.uuids)
	for _, uuid := range h.uuids {
		for _, dir := range SharedFolders {
			left, _ := filepath.Glob(filepath.Join(dir, Mark+uuid+".*")) // the pattern is right
			for _, path := range left {
				err = errors.Join(err, os.RemoveAll(path))
			}
		}
	}
	if err = errors.Join(err, os.RemoveAll(h.dir)); err != nil {
		return fmt.Errorf("ending machine %s: %w", h.ID, err)
	}
	h.ended = now.UTC().Truncate(time.Microsecond)
	return nil
}

// SharedFolders are where holders leave files beside their own folder. All machines of the
// rack share them, so that names say whose the files are.
var SharedFolders = []string{"/tmp", "/dev/shm"}

// killWorkOn kills the work of holders of some GPUs, as the end of their machine would.
func killWorkOn(uuids []string) error {
	for until := time.Now().Add(ending); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		found := workOn(uuids)
		if len(found) == 0 {
			return nil
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	return fmt.Errorf("work of holders goes on: processes %v", workOn(uuids))
}

// workOn are the processes that name some GPUs in their environment.
func workOn(uuids []string) []int {
	var found []int
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, path := range all {
		environment, err := os.ReadFile(path) //nolint:gosec // the kernel's
		if err != nil {
			continue // it has ended, or is not of our user
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && slices.ContainsFunc(uuids, func(uuid string) bool {
			return bytes.Contains(environment, []byte(uuid))
		}) {
			found = append(found, pid)
		}
	}
	return found
}
