// Package gcetest is a Compute Engine that does not exist: the part of its REST
// protocol that makes, finds and ends instances, over HTTP, with the state
// behind it, its own bill, and faults.
//
// It is written from the public API description and imports no SDK, so that the
// adapter's real library is what is tested against it. Like the simulated cloud
// nothing in it runs or waits: an instance is a few instants, computed against
// the clock when somebody asks.
//
// What it does not have: networks, images, IAM, resumable restarts. It accepts
// any name for those.
package gcetest

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// Config describes the cloud. Zero durations get the default that is named.
type Config struct {
	Project string
	Zones   []string
	Types   map[string]Type // by machine type
	// PageSize bounds a page below what the caller asks for; default 500.
	PageSize int
	Staging  time.Duration // from insert to STAGING; default 2 s
	Running  time.Duration // from insert to RUNNING and the end of the operation; default 12 s
	Guest    time.Duration // from RUNNING to the guest's report of its GPUs; default 60 s
	Deleting time.Duration // from delete to gone; default 20 s
	Notice   time.Duration // from preemption to its end; default 30 s
	PowerOff time.Duration // from the guest's power-off to TERMINATED; default 5 s
	// FailAfter is when an insert that cannot be met fails; default at once.
	FailAfter time.Duration
	// RequestMemory is how long a repeated requestId is known; default 1 h.
	RequestMemory time.Duration
	// OperationMemory is how long a finished operation is listed. Google keeps
	// them between one hour and 14 days; default 1 h.
	OperationMemory time.Duration
}

// Type is one machine type.
type Type struct {
	GPUs        int
	GPU         string // as nvidia-smi calls it
	MemoryMiB   int    // of one GPU
	Price, Spot money.MicroUSD
}

func (c Config) withDefaults() Config {
	c.PageSize = cmp.Or(c.PageSize, maxPage)
	c.Staging = cmp.Or(c.Staging, 2*time.Second)
	c.Running = cmp.Or(c.Running, 12*time.Second)
	c.Guest = cmp.Or(c.Guest, time.Minute)
	c.Deleting = cmp.Or(c.Deleting, 20*time.Second)
	c.Notice = cmp.Or(c.Notice, 30*time.Second)
	c.PowerOff = cmp.Or(c.PowerOff, 5*time.Second)
	c.RequestMemory = cmp.Or(c.RequestMemory, time.Hour)
	c.OperationMemory = cmp.Or(c.OperationMemory, time.Hour)
	return c
}

// Cloud is the fake. It is an http.Handler for the paths below /compute/v1, and
// safe for concurrent use.
type Cloud struct {
	config Config
	clock  clock.Clock
	mux    *http.ServeMux

	mu         sync.Mutex
	machines   []*machine // every one there ever was: the bill needs them
	operations []*operation
	lastID     uint64
	faults     []Fault
	calls      map[Call]int
	refusals   int // calls that are still to be refused for being too many
	listLag    time.Duration
	stock      map[string]int // by machine type: how many more can be had; absent is without end
}

// New returns an empty cloud.
func New(config Config, clock clock.Clock) *Cloud {
	c := &Cloud{
		config: config.withDefaults(), clock: clock, mux: http.NewServeMux(),
		lastID: 4_000_000_000_000_000_000, stock: map[string]int{}, calls: map[Call]int{},
	}
	const project = "/compute/v1/projects/{project}"
	const zone = project + "/zones/{zone}"
	for pattern, handle := range map[string]handler{
		"GET " + project + "/zones":                                c.listZones,
		"GET " + project + "/aggregated/instances":                 c.aggregatedList,
		"GET " + zone + "/instances":                               c.listInstances,
		"POST " + zone + "/instances":                              c.insertInstance,
		"GET " + zone + "/instances/{instance}":                    c.getInstance,
		"DELETE " + zone + "/instances/{instance}":                 c.deleteInstance,
		"POST " + zone + "/instances/{instance}/setMetadata":       c.setMetadata,
		"GET " + zone + "/instances/{instance}/getGuestAttributes": c.guestAttributes,
		"GET " + zone + "/operations":                              c.listOperations,
		"GET " + zone + "/operations/{operation}":                  c.getOperation,
		"POST " + zone + "/operations/{operation}/wait":            c.getOperation,
	} {
		c.mux.HandleFunc(pattern, c.wrapHandler(pattern, handle))
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// nextID returns a number that no resource had before.
func (c *Cloud) nextID() uint64 {
	c.lastID += 7_919
	return c.lastID
}

// Calls is how often the method was called so far, refused calls included.
func (c *Cloud) Calls(call Call) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}
