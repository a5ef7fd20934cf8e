package auth

import (
	"context"
	"net/netip"
	"sync"
)

// lookupQueues let one look-up at a time through for each network, in the order of
// their coming. What strangers cost the store is bounded by that, and a key that
// is good waits at most for those that came before it from its own network: a
// refusal instead would lock it out.
type lookupQueues struct {
	mu   sync.Mutex
	open map[netip.Prefix]*lookupQueue
}

type lookupQueue struct {
	users int // those who wait, and the one who is in it
	place chan struct{}
}

// waitTurn waits for the network's turn and returns what gives it to the next.
func (l *lookupQueues) waitTurn(ctx context.Context, from netip.Prefix) (leave func(), err error) {
	l.mu.Lock()
	mine := l.open[from]
	if mine == nil {
		mine = &lookupQueue{place: make(chan struct{}, 1)}
		l.open[from] = mine
	}
	mine.users++
	l.mu.Unlock()
	select {
	case mine.place <- struct{}{}:
		return func() { <-mine.place; l.leaveQueue(from, mine) }, nil
	case <-ctx.Done():
		l.leaveQueue(from, mine)
		return nil, ctx.Err()
	}
}

func (l *lookupQueues) leaveQueue(from netip.Prefix, mine *lookupQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.open, from)
	}
}
