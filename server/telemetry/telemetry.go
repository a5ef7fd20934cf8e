// Package telemetry keeps what the daemons of nodes said last.
//
// A report reaches the ledger when the health of a GPU changed, when a GPU that was idle does
// something, when the daemon is new to this process, and after WriteEvery, the second time sooner; in
// between it stays in memory. What daemons told other servers is read from the ledger, and is then up to
// WriteEvery old. Whether GPUs are idle is told by the ledger alone, so that all servers tell the same. A day of what
// GPUs did is kept in memory by each server, of what it was told itself: it is for people to look at, and nothing is
// decided by it.
package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

const (
	// BeatEvery is how often a daemon reports.
	BeatEvery = 10 * time.Second
	// WriteEvery is how often a daemon of which nothing is new is written down.
	WriteEvery = 30 * time.Second
	// Silence is how long nothing comes from a daemon until it counts as silent.
	Silence = activity.MaxGap
	// forgetAfter is how long what a silent daemon said is remembered.
	forgetAfter = 24 * time.Hour
	// readEvery is how often the ledger is asked at most for what other servers heard.
	readEvery = 5 * time.Second
)

// State says whether a daemon reports.
type State string

// The states of a node's daemon.
const (
	None   State = "none"   // it never called home
	Online State = "online" // it reports
	Silent State = "silent" // it did, longer than Silence ago
)

// Said is what a daemon said last.
type Said struct {
	At      time.Time
	Program string
	Look    contract.NodeLook
}

// GPU returns what was said of a GPU, or of the one that the UUID names a share of.
func (s Said) GPU(uuid string) (contract.LookGPU, bool) {
	uuid = capacity.GPUOf(uuid)
	for _, g := range s.Look.GPUs {
		if g.UUID == uuid {
			return g, true
		}
	}
	return contract.LookGPU{}, false
}

// entry is what is known of one daemon. Said is here alone; the rest is of the last
// write of this process.
type entry struct {
	Said
	direct         bool // it was said to this process
	epoch, seq     int64
	bootID, health string
	clears         int
	written, due   time.Time            // when it was written, and is the next time if nothing is new
	used           map[string]time.Time // see usedAfter
	told           time.Time            // when this process was told something last
	past           past                 // of what it was told
}

// Hub knows the daemons. It is safe for concurrent use.
type Hub struct {
	ledger *verbs.Ledger
	clock  clock.Clock
	began  time.Time

	reading sync.Mutex // held while the ledger is read, so that it is read once
	readAt  time.Time
	// before is when, by this process's clock, any daemon had reported last when the hub began.
	before  time.Time
	through time.Time // of the newest presence that was read, by the database's clock

	mu    sync.Mutex
	nodes map[string]*entry
}

// NewHub returns a hub that has heard nothing.
func NewHub(l *verbs.Ledger, c clock.Clock) *Hub {
	return &Hub{ledger: l, clock: c, began: c.Now(), nodes: map[string]*entry{}}
}

// Taken is what became of a report.
type Taken struct {
	Answer contract.HeartbeatAnswer
	// Settle says that what it tells of work on its node is to be settled: the daemon has some, or was asked to
	// report because there is some for it, or the report was written down. Any other report costs nothing.
	Settle bool
	// KeyEnds is when the key ends with which it came, of a report that was written down, which the ledger judged; else
	// it is zero.
	KeyEnds time.Time
}

// Beat takes a report of the actor's daemon. A report that comes after a later one of the
// same daemon is dropped. The errors are those of verbs.RecordBeat.
func (h *Hub) Beat(ctx context.Context, actor ledger.Actor, b contract.Heartbeat) (Taken, error) {
	clears, late, due := h.take(actor.NodeID, b)
	taken := Taken{Answer: contract.HeartbeatAnswer{Clears: clears, HeartbeatSeconds: int64(BeatEvery / time.Second)}}
	if late {
		return taken, nil
	}
	if due {
		d, err := h.write(ctx, actor, b)
		if err != nil {
			return taken, err
		}
		taken.Answer.Clears, taken.KeyEnds = d.Clears, d.KeyEnds(actor.KeyID)
	}
	taken.Settle = due || b.Asked || tellsOfWork(b)
	return taken, nil
}

// tellsOfWork reports whether a report says something of what runs, or ran, on its node.
func tellsOfWork(b contract.Heartbeat) bool {
	return len(b.Jobs)+len(b.Holds)+len(b.Cleaned)+len(b.OverHolds)+len(b.GoneJobs) > 0
}

// write writes a report down, and returns what is known of who sent it.
func (h *Hub) write(ctx context.Context, actor ledger.Actor, b contract.Heartbeat) (ledger.Daemon, error) {
	look, err := json.Marshal(b.Look)
	if err != nil {
		return ledger.Daemon{}, fmt.Errorf("encoding a look: %w", err)
	}
	d, err := h.ledger.RecordBeat(ctx, actor, ledger.Beat{BootID: b.BootID, Epoch: b.Epoch, Program: b.Version,
		Clears: b.Clears, Look: look, Activity: h.activityIn(actor.NodeID, b), Unhealthy: unhealthy(b.Look),
		Driver: realDriver(b.Look), Celsius: hottest(b.Look), Isolation: capacity.Isolation(b.Look.Isolation)})
	if err == nil {
		h.noteWritten(actor.NodeID, b, d)
	}
	return d, err
}

// take keeps a report that needs no write, and reports whether this one does.
func (h *Hub) take(nodeID string, b contract.Heartbeat) (clears int, late, due bool) {
	now := h.clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.nodes[nodeID]
	if e == nil || !e.direct || e.bootID != b.BootID || e.epoch != b.Epoch {
		return 0, false, true
	}
	if b.Seq <= e.seq {
		return e.clears, true, false
	}
	if !now.Before(e.due) || e.health != healthOf(b.Look) || endsIdleness(e.used, b.Look, now) {
		return e.clears, false, true
	}
	e.seq, e.Said = b.Seq, Said{At: now, Program: b.Version, Look: b.Look}
	e.used = usedAfter(e.used, b.Look, now)
	e.told = now
	e.past.add(b.Look, now)
	return e.clears, false, false
}

func (h *Hub) noteWritten(nodeID string, b contract.Heartbeat, d ledger.Daemon) {
	now := h.clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	e, kept := h.nodes[nodeID], past{}
	if e != nil && e.past != nil {
		kept = e.past
	}
	kept.add(b.Look, now)
	if e != nil && e.direct && e.epoch == b.Epoch && e.seq > b.Seq {
		return // a later one came while this one was written
	}
	var used map[string]time.Time
	due := now.Add(WriteEvery)
	if e != nil {
		used = e.used
	}
	if e == nil || !e.direct || now.Sub(e.written) >= 2*WriteEvery {
		due = now.Add(firstWait(nodeID)) // all daemons of a cluster may come at once
	}
	h.nodes[nodeID] = &entry{Said: Said{At: now, Program: b.Version, Look: b.Look}, direct: true, epoch: b.Epoch,
		seq: b.Seq, bootID: b.BootID, health: healthOf(b.Look), clears: d.Clears, written: now, due: due,
		used: usedAfter(used, b.Look, now), told: now, past: kept}
}

// firstWait is after how long the second report of a daemon that came, or came back, is written down: at most
// WriteEvery, and another part of it for each node, so that those who come together are not written together for ever.
func firstWait(nodeID string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(nodeID))
	return WriteEvery * time.Duration(h.Sum32()%1024) / 1024
}

// healthOf is all of a look that makes it be written at once.
func healthOf(l contract.NodeLook) string {
	var out strings.Builder
	for _, g := range l.GPUs {
		out.WriteString(g.UUID + " " + g.Health + "\n")
	}
	return out.String()
}

// realDriver is the driver of a look; empty: it is not told, or nothing of the look is real.
func realDriver(l contract.NodeLook) capacity.Driver {
	if d := capacity.Driver(l.Driver); l.Source != "simulated" && d.Valid() {
		return d
	}
	return ""
}

// hottest is the temperature of a look's hottest GPU, in °C; 0: no GPU has one.
func hottest(l contract.NodeLook) (celsius int) {
	for _, g := range l.GPUs {
		if g.Temperature != nil {
			celsius = max(celsius, *g.Temperature)
		}
	}
	return celsius
}

// unhealthy are the GPUs of a look that must not be handed out.
func unhealthy(l contract.NodeLook) []ledger.UnhealthyGPU {
	var all []ledger.UnhealthyGPU
	for _, g := range l.GPUs {
		if g.Health != "unhealthy" {
			continue
		}
		why := "unhealthy"
		if len(g.Evidence) > 0 {
			why = g.Evidence[0].Detail
		}
		all = append(all, ledger.UnhealthyGPU{UUID: g.UUID, Finding: fmt.Sprintf("GPU %d (%s): %s", g.Index, g.UUID, why)})
	}
	return all
}

// Refresh reads what daemons told other servers, unless that was just done.
func (h *Hub) Refresh(ctx context.Context) error {
	h.reading.Lock()
	defer h.reading.Unlock()
	now := h.clock.Now()
	if age := now.Sub(h.readAt); !h.readAt.IsZero() && age >= 0 && age < readEvery {
		return nil
	}
	var all []ledger.Presence
	var stored time.Time
	err := h.ledger.Store().Read(ctx, func(r ledger.Reader) (err error) {
		stored = r.Now()
		after := h.through.Add(-readEvery) // one that was written before may be committed after another
		if oldest := stored.Add(-forgetAfter); after.Before(oldest) {
			after = oldest
		}
		all, err = r.Presences(after)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading what daemons said: %w", err)
	}
	first := h.readAt.IsZero()
	h.readAt = now
	for _, p := range all {
		h.through = p.SeenAt
		h.learn(p, now.Add(p.SeenAt.Sub(stored)))
	}
	if len(all) > 0 && first {
		h.setBefore(now.Add(h.through.Sub(stored)))
	}
	h.forget(now)
	return nil
}

// setBefore keeps when any daemon had reported last when the hub began.
func (h *Hub) setBefore(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = at
}

// learn keeps what a daemon said elsewhere at a time, by this process's clock, unless it
// has said more here since.
func (h *Hub) learn(p ledger.Presence, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.nodes[p.NodeID]; e != nil && !e.At.Before(at) {
		return
	}
	e := &entry{Said: Said{At: at, Program: p.Program}}
	if json.Unmarshal(p.Look, &e.Look) != nil {
		e.Look = contract.NodeLook{Problem: "what it said cannot be read"}
	}
	if before := h.nodes[p.NodeID]; before != nil && before.direct {
		kept := *before
		kept.Said, e = e.Said, &kept
	}
	h.nodes[p.NodeID] = e
}

func (h *Hub) forget(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, e := range h.nodes {
		if now.Sub(e.At) > forgetAfter {
			delete(h.nodes, id)
		}
	}
}

// Of returns what the daemon of a node said last. Before the hub has listened for a whole
// Silence only those are silent that had been so while another server listened.
func (h *Hub) Of(nodeID string) (Said, State) {
	now := h.clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.nodes[nodeID]
	if e == nil {
		return Said{}, None
	}
	if now.Sub(e.At) > Silence && (now.Sub(h.began) > Silence || h.before.Sub(e.At) > Silence) {
		return e.Said, Silent
	}
	return e.Said, Online
}
