package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/internal/httpx"
)

const (
	// lookEvery is how often the health that somebody watches is looked at. Readiness bounds what that costs.
	lookEvery = time.Second
	// mostWatches is how many watch it at a time, and mostWatchesFrom how many of one network: nobody is asked for
	// a key.
	mostWatches     = 256
	mostWatchesFrom = 16
	// watchWithin is how long a watch lives to which nothing was sent and at which nobody looked.
	watchWithin = 2 * time.Minute
	// watchFor is how long a watch lives at most, as one whose client is gone without a word keeps its place: nothing is
	// sent to it by which that would be noticed.
	watchFor = time.Hour
)

// statusUnknownService is what a watch of a service that is not there sees, as gRPC's health protocol has it.
const statusUnknownService grpchealth.Status = 3

// health answers who asks as gRPC's health protocol does.
type health struct {
	*Readiness
	services []string
	watches  *healthWatches
}

var _ grpchealth.Watcher = health{}

// Check says whether this instance can do its work, for the services that there are.
func (h health) Check(ctx context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	w := watchOf(ctx)
	if err := w.beforeLook(h.Clock.Now()); err != nil {
		return nil, err
	}
	defer w.afterLook(h.Leaving()) // as it was before the look, which then tells of it
	switch {
	case !h.serves(r.Service) && w != nil:
		return &grpchealth.CheckResponse{Status: statusUnknownService}, nil
	case !h.serves(r.Service):
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such service"))
	case h.Look(ctx) != "":
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

// serves reports whether there is a service of the name; empty: all of them.
func (h health) serves(service string) bool {
	return service == "" || slices.Contains(h.services, service)
}

// Watch implements grpchealth.Watcher.
func (h health) Watch(ctx context.Context, _ *grpchealth.CheckRequest, onChange func()) (func(), error) {
	w := watchOf(ctx)
	if w == nil {
		return nil, connect.NewError(connect.CodeInternal, errors.New("a watch came without its place"))
	}
	w.ends = h.Clock.Now().Add(watchFor)
	h.watches.begin(w, onChange)
	return func() {}, nil
}

type watchKey struct{}

// watchOf is the watch that a look is for; nil: somebody asks once.
func watchOf(ctx context.Context) *healthWatch {
	w, _ := ctx.Value(watchKey{}).(*healthWatch)
	return w
}

// healthWatch is somebody who watches. Only its own goroutine looks.
type healthWatch struct {
	extend func()
	look   func() // has it look again
	ends   time.Time
	last   bool // it was told that the server leaves
}

// beforeLook ends a watch to which all was told, or which is as old as one gets. Clients begin again after both.
func (w *healthWatch) beforeLook(now time.Time) error {
	switch {
	case w == nil:
		return nil
	case w.last:
		return connect.NewError(connect.CodeUnavailable, errors.New("the server ends: watch another one"))
	case !now.Before(w.ends):
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("a watch lives for %s: watch again", watchFor))
	}
	w.extend()
	return nil
}

// afterLook has a watch that was told that the server leaves look once more, which ends it.
func (w *healthWatch) afterLook(leaving bool) {
	if w != nil && leaving {
		w.last = true
		w.look()
	}
}

// healthWatches are those who watch.
type healthWatches struct {
	mu   sync.Mutex
	all  map[*healthWatch]netip.Prefix
	from map[netip.Prefix]int
}

func newHealthWatches() *healthWatches {
	return &healthWatches{all: map[*healthWatch]netip.Prefix{}, from: map[netip.Prefix]int{}}
}

// admit gives a watch its place, if there is one.
func (h *healthWatches) admit(w *healthWatch, from netip.Prefix) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) >= mostWatches || h.from[from] >= mostWatchesFrom {
		return false
	}
	h.all[w] = from
	h.from[from]++
	return true
}

func (h *healthWatches) begin(w *healthWatch, look func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.look = look
}

func (h *healthWatches) release(w *healthWatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := h.all[w]
	delete(h.all, w)
	if h.from[from]--; h.from[from] == 0 {
		delete(h.from, from)
	}
}

// look has all look again.
func (h *healthWatches) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.all {
		if w.look != nil {
			w.look()
		}
	}
}

// Run has those who watch look every second. When the context has ended it tells them that the server leaves.
func (h *healthWatches) Run(ctx context.Context, of *Readiness) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			of.Leave()
			h.look()
			return
		case <-tick.C:
			h.look()
		}
	}
}

// place gives a watch its place until done is called, or answers that there is none.
func (h *healthWatches) place(ctx context.Context, c *gin.Context, extend func()) (
	watching context.Context, done func()) {
	w := &healthWatch{extend: extend}
	if !h.admit(w, httpx.Network(exchangeOf(c).from)) {
		abortWith(c, slowDown("As many watch the health of this server as may, from this address or from all.",
			retryStreams))
		return nil, nil
	}
	return context.WithValue(ctx, watchKey{}, w), func() { h.release(w) }
}
