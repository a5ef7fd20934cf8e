// Package companion runs the daemon of a node beside the control plane, where both are on one
// machine: it starts the daemon when the machine becomes a node, hands it its join token, and
// starts it again when it has ended. A daemon whose node is over ends by itself, once it has
// ended what its holders ran.
package companion

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/forewarm/forewarm/internal/obs"
)

const (
	lookEvery = time.Second // what the machine is used as
	// firstRestart is how long a daemon that has ended is left so; each further time it is
	// twice as long, up to lastRestart, until one has run for longer than that.
	firstRestart = time.Second
	lastRestart  = time.Minute
	stopWithin   = 30 * time.Second // after TERM: holders' commands are hung up first
)

// Node is what a machine is used as.
type Node struct {
	ID       string
	Simulate int    // how many simulated GPUs it has; 0: its own
	Seed     string // of the simulated GPUs
}

// Config is what a companion works with.
type Config struct {
	Program    string // the path of forewarm-node
	URL        string // of the control plane
	StateDir   string // in which the daemon of each node has a folder
	HoldDir    string // in which the holders of each node have one; others must be able to pass through it
	SharedUser bool   // holders' work may have the daemon's own user
	LogLevel   string // of the daemon
	LogFormat  string
	Log        *slog.Logger
	Output     io.Writer // for the daemon's log
	// Node returns what the machine is used as now; false: as nothing.
	Node func() (Node, bool)
	// Token makes a join token for a node. It may be called again.
	Token func(ctx context.Context, nodeID string) (obs.Secret, error)
}

// Companion keeps the daemons of one machine. It is used by one goroutine.
type Companion struct {
	Config
	running map[string]*process // by node
	next    map[string]restart  // by node, of those that have ended
}

// restart says when a daemon is started again.
type restart struct {
	at    time.Time
	after time.Duration
}

// New returns a companion that runs nothing yet.
func New(cfg Config) *Companion {
	return &Companion{Config: cfg, running: map[string]*process{}, next: map[string]restart{}}
}

// Run keeps a daemon running for what the machine is used as, until the context ends, and
// then ends all that run.
func (c *Companion) Run(ctx context.Context) error {
	defer c.stopAll()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for now := time.Now(); ; {
		c.step(ctx, now)
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}

// step notes which daemons have ended, and starts the one that is missing.
func (c *Companion) step(ctx context.Context, now time.Time) {
	node, used := c.Node()
	for id, p := range c.running {
		select {
		case <-p.exited:
			delete(c.running, id)
			c.noteEnd(id, p, now, used && id == node.ID)
		default:
		}
	}
	if !used || c.running[node.ID] != nil || now.Before(c.next[node.ID].at) {
		return
	}
	if err := c.start(ctx, node, now); err != nil {
		c.Log.WarnContext(ctx, "the node's daemon was not started", "node", node.ID, "error", err)
		c.delay(node.ID, now)
	}
}

// noteEnd decides what follows from the end of a daemon: another start, or, where its node
// is over, that its folder goes.
func (c *Companion) noteEnd(id string, p *process, now time.Time, wanted bool) {
	if wanted {
		if now.Sub(p.began) > lastRestart {
			delete(c.next, id)
		}
		c.delay(id, now)
		c.Log.Warn("the node's daemon has ended, and is started again", "node", id, "how", p.cmd.ProcessState.String(),
			"in", c.next[id].after)
		return
	}
	delete(c.next, id)
	if p.refused() {
		_ = os.Remove(filepath.Join(c.HoldDir, id)) // it is empty, unless something is left of holders
		if err := os.RemoveAll(filepath.Join(c.StateDir, id)); err != nil {
			c.Log.Warn("the folder of a daemon whose node is over stays", "error", err)
		}
	}
}

// delay puts a start off, each time for longer.
func (c *Companion) delay(id string, now time.Time) {
	wait := min(max(firstRestart, 2*c.next[id].after), lastRestart)
	c.next[id] = restart{at: now.Add(wait), after: wait}
}

// stopAll has all daemons end, and waits for them.
func (c *Companion) stopAll() {
	for _, p := range c.running {
		p.terminate()
	}
	over := time.NewTimer(stopWithin)
	defer over.Stop()
	for id, p := range c.running {
		select {
		case <-p.exited:
		case <-over.C:
			c.Log.Warn("the node's daemon does not end, and is killed", "node", id)
			p.kill()
			<-p.exited
		}
	}
}
