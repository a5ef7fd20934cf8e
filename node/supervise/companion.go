package supervise

import (
	"errors"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/contract/session/tether"
)

// companion is a command's end of its session. It hangs the command up once its holder has left, or has been away for
// as long as the command waits.
type companion struct {
	*tether.Tether
	patience time.Duration
	hangUp   func()

	mu    sync.Mutex
	alone *time.Timer // runs while nobody is there
}

var errLeft = errors.New("the holder has left")

// newCompanion returns a companion to which somebody attaches soon.
func newCompanion(patience time.Duration, hangUp func()) *companion {
	c := &companion{patience: patience, hangUp: hangUp}
	c.Tether = tether.New(tether.Config{Keeps: patience > 0, HungUp: c.leave, Lost: func(error) { c.wait() }})
	c.alone = time.AfterFunc(max(patience, beginsWithin), c.leave)
	return c
}

// leave hangs the command up: nobody comes back.
func (c *companion) leave() {
	c.hangUp()
	c.End(errLeft)
}

func (c *companion) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Attached() { // somebody may have come meanwhile
		c.alone.Reset(c.patience)
	}
}

// attach has a line take the place of the one before, whose holder has taken so many messages.
func (c *companion) attach(line *session.Line, taken uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.Attach(line, taken)
	if err == nil {
		c.alone.Stop()
	}
	return err
}
