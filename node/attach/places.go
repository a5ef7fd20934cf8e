package attach

import (
	"fmt"
	"sync"

	"github.com/forewarm/forewarm/contract/session"
)

// How many sessions are open at a time: of them, connections to ports are fewer, so that
// whoever has many of these still gets in with a command.
const (
	// MostSessions is how many a node has.
	MostSessions = 64
	// MostOfOne is how many of these an allocation has.
	MostOfOne  = 16
	mostPorts  = MostSessions * 3 / 4
	portsOfOne = MostOfOne * 3 / 4
)

// counts are sessions that are open, and how many of them are connections to ports.
type counts struct{ all, ports int }

func (c *counts) add(n int, port bool) {
	c.all += n
	if port {
		c.ports += n
	}
}

// whatToDo helps a holder for whom there is no place. The client knows it by these words.
const whatToDo = session.AwaitPlace + " (Ctrl-C where it was begun), and try again"

// describe says for their holder what is open.
func (c *counts) describe() string {
	return fmt.Sprintf("%d of exec or cp, and %d of port", c.all-c.ports, c.ports)
}

// places counts what is open on a node. Its zero value is ready to use.
type places struct {
	mu   sync.Mutex
	node counts
	of   map[string]*counts // by allocation
}

// enter counts a session of an allocation until leave is called. Its error says for the
// holder why there is no place.
func (p *places) enter(allocationID string, port bool) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[allocationID]
	if own == nil {
		own = &counts{}
	}
	switch {
	case p.node.all >= MostSessions:
		return nil, fmt.Errorf("the node has as many sessions as it takes, %d, of which this allocation has %s: %s",
			MostSessions, own.describe(), whatToDo)
	case own.all >= MostOfOne:
		return nil, fmt.Errorf("the allocation has as many sessions on the node as it may, %d: %s; %s", MostOfOne,
			own.describe(), whatToDo)
	case port && p.node.ports >= mostPorts:
		return nil, fmt.Errorf("the node has as many connections to ports as it takes, %d, of which this allocation has "+
			"%d: %s", mostPorts, own.ports, whatToDo)
	case port && own.ports >= portsOfOne:
		return nil, fmt.Errorf("the allocation has as many connections to ports of the node as it may, %d; the rest is "+
			"kept for commands: %s", portsOfOne, whatToDo)
	}
	p.add(allocationID, own, port)
	return func() { p.leave(allocationID, port) }, nil
}

// take counts a command that runs already, however many there are.
func (p *places) take(allocationID string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[allocationID]
	if own == nil {
		own = &counts{}
	}
	p.add(allocationID, own, false)
	return func() { p.leave(allocationID, false) }
}

func (p *places) add(allocationID string, own *counts, port bool) {
	if p.of == nil {
		p.of = map[string]*counts{}
	}
	p.of[allocationID] = own
	own.add(1, port)
	p.node.add(1, port)
}

func (p *places) leave(allocationID string, port bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node.add(-1, port)
	if own := p.of[allocationID]; own.all > 1 {
		own.add(-1, port)
	} else {
		delete(p.of, allocationID)
	}
}
