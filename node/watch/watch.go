// Package watch follows the health of a machine's GPUs from look to look. What it
// remembers is one value, which its caller keeps over restarts.
package watch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/node/gpu"
)

// Memory is what is known of the GPUs of one boot.
type Memory struct {
	BootID    string                      `json:"boot_id"`
	Clears    int                         `json:"clears"`         // those of the operator that were followed
	KernelSeq int64                       `json:"kernel_seq"`     // up to which record the kernel's log was read
	Known     map[string]contract.LookGPU `json:"known"`          // by UUID: where it is, and what it is called
	Tracks    map[string]health.Track     `json:"tracks"`         // by UUID of the GPU, also of MIG devices
	BurnIns   map[string]contract.BurnIn  `json:"burn_ins"`       // by UUID
	XIDs      map[string]XIDs             `json:"xids,omitempty"` // by UUID of the GPU
}

// XIDs are the errors that the driver reported of a GPU in this boot.
type XIDs struct {
	Count int64 `json:"count"`
	Last  int   `json:"last"`
}

// For returns the memory if it is of a boot, else an empty one: what was before this boot
// is history, but for what the operator cleared.
func (m Memory) For(bootID string) Memory {
	if m.BootID != bootID {
		m = Memory{BootID: bootID, Clears: m.Clears, KernelSeq: -1}
	}
	if m.Known == nil {
		m.Known = map[string]contract.LookGPU{}
	}
	if m.Tracks == nil {
		m.Tracks = map[string]health.Track{}
	}
	if m.BurnIns == nil {
		m.BurnIns = map[string]contract.BurnIn{}
	}
	if m.XIDs == nil {
		m.XIDs = map[string]XIDs{}
	}
	return m
}

// Copy returns a memory that shares nothing with m.
func (m Memory) Copy() Memory {
	m.Known, m.Tracks, m.BurnIns = maps.Clone(m.Known), maps.Clone(m.Tracks), maps.Clone(m.BurnIns)
	m.XIDs = maps.Clone(m.XIDs)
	for uuid, t := range m.Tracks {
		t.Faults = slices.Clone(t.Faults)
		m.Tracks[uuid] = t
	}
	return m
}

// Watcher judges what a source sees. It is used by one goroutine at a time.
type Watcher struct {
	source gpu.Source
	kernel *gpu.KernelLog
	policy health.Policy
	memory Memory
	tester Tester
}

// New returns a watcher. kernel is where XIDs are read; nil: the source tells of them.
// m must come from Memory.For.
func New(source gpu.Source, kernel *gpu.KernelLog, p health.Policy, m Memory) *Watcher {
	return &Watcher{source: source, kernel: kernel, policy: p, memory: m}
}

// Memory returns what is to be remembered. It must not be changed.
func (w *Watcher) Memory() Memory { return w.memory }

// Clear forgets what spoke against the GPUs, if an operator cleared it more often than
// was followed so far.
func (w *Watcher) Clear(clears int, now time.Time) {
	if clears <= w.memory.Clears {
		return
	}
	w.memory.Clears = clears
	for uuid, t := range w.memory.Tracks {
		w.memory.Tracks[uuid] = t.Clear(now)
	}
	clear(w.memory.BurnIns) // it is tested anew
}

// Look looks once. A look that fails is one with a problem, which lists the GPUs that were
// seen before.
func (w *Watcher) Look(ctx context.Context, now time.Time) contract.NodeLook {
	r, err := w.source.Look(ctx)
	events := r.Events
	if w.kernel != nil {
		events, w.memory.KernelSeq = w.kernel.Take()
	}
	if err != nil {
		came := w.byGPU(events)
		w.count(came)
		return w.failed(err, came, now)
	}
	r.Look.GPUs = append(r.Look.GPUs, w.findLost(r.Look.GPUs)...)
	came, readings := w.byGPU(events), map[string]health.Reading{}
	w.count(came)
	for i := range r.Look.GPUs {
		g := &r.Look.GPUs[i]
		g.XIDs = came[chipOf(*g)]
		w.tellXIDs(g, w.kernel != nil || r.HearsXIDs)
		reading := readingOf(*g)
		reading.BurnIn = cmp.Or(w.failedBurnIn(g.UUID), readings[chipOf(*g)].BurnIn)
		readings[chipOf(*g)] = reading
	}
	for uuid, reading := range health.MarkShared(readings, w.policy) {
		w.memory.Tracks[uuid] = w.memory.Tracks[uuid].Next(reading, w.policy, now)
	}
	w.addHealth(r.Look.GPUs)
	return r.Look
}

// chipOf is the UUID of what health is followed of: the GPU, also of a MIG device.
func chipOf(g contract.LookGPU) string { return cmp.Or(g.Parent, g.UUID) }

// findLost remembers what is seen, and returns what is seen no more. A GPU that is divided otherwise than before is not
// lost, and of what it was divided into nothing is known any more.
func (w *Watcher) findLost(found []contract.LookGPU) (lost []contract.LookGPU) {
	seen, chips := map[string]bool{}, map[string]bool{}
	for _, g := range found {
		seen[g.UUID], chips[chipOf(g)] = true, true
		w.memory.Known[g.UUID] = contract.LookGPU{UUID: g.UUID, Parent: g.Parent, PCI: g.PCI, Index: g.Index,
			Minor: g.Minor, Capabilities: g.Capabilities, Model: g.Model}
	}
	for _, uuid := range slices.Sorted(maps.Keys(w.memory.Known)) {
		known := w.memory.Known[uuid]
		switch {
		case seen[uuid]:
		case chips[chipOf(known)]:
			delete(w.memory.Known, uuid)
		default:
			known.Lost = true
			lost = append(lost, known)
		}
	}
	return lost
}

// failed is a look in which nothing could be seen. The kernel's log speaks all the same.
func (w *Watcher) failed(err error, came map[string][]contract.XID, now time.Time) contract.NodeLook {
	text := err.Error()
	look := contract.NodeLook{Source: "none", Problem: text[:min(len(text), 300)], GPUs: []contract.LookGPU{}}
	missed := map[string]bool{}
	for _, uuid := range slices.Sorted(maps.Keys(w.memory.Known)) {
		g := w.memory.Known[uuid]
		chip := chipOf(g)
		switch g.XIDs = came[chip]; {
		case missed[chip]: // it has several MIG devices
		case len(g.XIDs) > 0:
			w.memory.Tracks[chip] = w.memory.Tracks[chip].Next(readingOf(g), w.policy, now)
		default:
			w.memory.Tracks[chip] = w.memory.Tracks[chip].Miss(w.policy, now)
		}
		missed[chip] = true
		look.GPUs = append(look.GPUs, g)
	}
	w.addHealth(look.GPUs)
	return look
}

// mostXIDs is how many kinds of XID one look tells of a GPU.
const mostXIDs = 32

// byGPU sorts events by the GPU on which they came. Those of a GPU that was never seen say
// nothing.
func (w *Watcher) byGPU(events []gpu.Event) map[string][]contract.XID {
	at := map[string]string{}
	for _, g := range w.memory.Known {
		at[g.PCI] = chipOf(g)
	}
	out := map[string][]contract.XID{}
	for _, e := range events {
		uuid := e.UUID
		if uuid == "" {
			uuid = at[e.PCI]
		}
		if uuid != "" && len(out[uuid]) < mostXIDs {
			out[uuid] = append(out[uuid], contract.XID{Code: e.Code, Count: max(e.Count, 1)})
		}
	}
	return out
}

// readingOf is what a look says of a GPU's health.
func readingOf(g contract.LookGPU) health.Reading {
	r := health.Reading{Lost: g.Lost, Recovery: g.Recovery}
	r.RemapPending = g.RemapPending != nil && *g.RemapPending
	r.RemapFailed = g.RemapFailed != nil && *g.RemapFailed
	r.Slowdown = slices.ContainsFunc(g.Throttle, func(s string) bool { return slices.Contains(gpu.HardwareThrottles, s) })
	for _, x := range g.XIDs {
		r.XIDs = append(r.XIDs, health.XID{Code: x.Code, Count: x.Count})
	}
	return r
}

// mostEvidence is how many faults a look tells of a GPU.
const mostEvidence = 8

func (w *Watcher) addHealth(gpus []contract.LookGPU) {
	for i := range gpus {
		g := &gpus[i]
		if b, tested := w.memory.BurnIns[g.UUID]; tested {
			g.BurnIn = &b
		}
		t := w.memory.Tracks[chipOf(*g)]
		g.Health = string(t.State)
		for _, f := range t.Evidence() {
			if len(g.Evidence) < mostEvidence {
				g.Evidence = append(g.Evidence, contract.HealthEvidence{Rule: f.Rule, Detail: f.Detail, Since: f.First.UTC()})
			}
		}
	}
}
