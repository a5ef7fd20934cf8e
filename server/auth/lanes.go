package auth

import (
	"context"
	"net/netip"
	"sync"
)

// lanes let one look-up at a time through for each network, in the order of
// their coming. What strangers cost the store is bounded by that, and a key that
// is good waits at most for those that came before it from its own network: a
// refusal instead would lock it out.
type lanes struct {
	mu   sync.Mutex
	open map[netip.Prefix]*lane
}

type lane struct {
	users int // those who wait, and the one who is in it
	place chan struct{}
}

// enter waits for the network's lane and returns what gives it to the next.
func (l *lanes) enter(ctx context.Context, from netip.Prefix) (leave func(), err error) {
	l.mu.Lock()
	mine := l.open[from]
	if mine == nil {
		mine = &lane{place: make(chan struct{}, 1)}
		l.open[from] = mine
	}
	mine.users++
	l.mu.Unlock()
	select {
	case mine.place <- struct{}{}:
		return func() { <-mine.place; l.done(from, mine) }, nil
	case <-ctx.Done():
		l.done(from, mine)
		return nil, ctx.Err()
	}
}

func (l *lanes) done(from netip.Prefix, mine *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.open, from)
	}
}
