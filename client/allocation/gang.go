package allocation

import (
	"context"
	"sync"
)

// Gang is one command on each node of what is held, such as the launcher of a training run.
type Gang struct {
	// Cmds are the commands, by the rank of their nodes. Their fields may be set before Run:
	// without that, what they write is dropped.
	Cmds []*Cmd

	cancel context.CancelFunc
}

// ExecEach returns the same command on each node. When the context ends, all are hung up.
func (h *Held) ExecEach(ctx context.Context, args ...string) *Gang {
	g := &Gang{}
	ctx, g.cancel = context.WithCancel(ctx)
	for rank := range h.Allocation().Access.Nodes {
		c := h.Exec(ctx, args...)
		c.Node = rank
		g.Cmds = append(g.Cmds, c)
	}
	return g
}

// Run runs all of them, and returns when all have ended. If one fails the others are hung up, as
// they would wait for it in vain, and the error is that of the one that failed first.
func (g *Gang) Run() error {
	defer g.cancel()
	var all sync.WaitGroup
	var failed sync.Once
	var first error
	for _, c := range g.Cmds {
		all.Go(func() {
			if err := c.Run(); err != nil {
				failed.Do(func() {
					first = err
					g.cancel()
				})
			}
		})
	}
	all.Wait()
	return first
}
