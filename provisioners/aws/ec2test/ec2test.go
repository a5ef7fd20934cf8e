// Package ec2test is a region of Amazon EC2 that does not exist: it speaks the
// Query protocol over HTTP (forms in, XML out), keeps machines, and sends a bill.
//
// It fakes the provider, not the adapter's calls, so that the real SDK can be
// pointed at it: client tokens with their zonal scope, pages, answers that lag,
// stock-outs, quotas, spot reclaims with their notice, capacity blocks that end,
// and errors by code. Its machines run what their user data says as far as that
// can be seen from outside: they print the report of their GPUs on the console
// and power themselves off when the time in their tag is over. What EC2 is known
// to do is done here; what it is not known to do is not made up, but the worse
// of two possible answers is chosen.
//
// Nothing in it runs or waits. A machine is a few instants that are computed
// against the clock when somebody looks.
package ec2test

import (
	"sync"

	"github.com/forewarm/forewarm/internal/clock"
)

// Region is one account in one region of the fake. It is an http.Handler and
// safe for concurrent use.
type Region struct {
	clock clock.Clock

	mu       sync.Mutex
	config   Config
	machines []*machine          // in the order of their birth, for ever: the bill needs them
	byID     map[string]*machine // the same
	tokens   map[string]*launch  // by client token and, where one was named, zone
	stock    map[[2]string]int   // by zone and type; a missing one is without limit
	faults   []Fault
	events   []scheduled
	calls    map[string]int // by action
	made     int
}

// launch is what a client token stands for.
type launch struct {
	parameters string
	machine    *machine
}

// New opens an empty region.
func New(config Config, clock clock.Clock) *Region {
	r := &Region{
		clock: clock, config: config.WithDefaults(), byID: map[string]*machine{},
		tokens: map[string]*launch{}, stock: map[[2]string]int{}, calls: map[string]int{},
	}
	for _, kind := range r.config.Types {
		for _, zone := range r.config.Zones {
			if kind.Stock > 0 {
				r.stock[[2]string{zone, kind.Name}] = kind.Stock
			}
		}
	}
	return r
}
