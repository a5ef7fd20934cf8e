package site

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/provisioners/aws/ec2test"
)

// The machines of the cloud. The prices are odd, so that rounding shows.
const (
	region   = "eu-test-1"
	zone     = "eu-test-1a"
	kind     = "g6.12xlarge"
	gpuName  = "NVIDIA L4"
	memory   = 23_034
	perNode  = 2
	onDemand = 4_601_603
	spot     = 1_500_007
)

// The tags that the adapter gives to its machines.
const (
	ownerTag = "forewarm:owner"
	nodeTag  = "forewarm:node"
)

// Cloud is a provider that keeps its own machines and its own bill. It runs in
// this process, where nothing breaks it but itself.
type Cloud struct {
	region *ec2test.Region
	server *http.Server
	Port   int
	// ForeignStands says whether the machine of somebody else in the account still
	// stands.
	ForeignStands func() bool

	mu    sync.Mutex
	taken map[string]bool // machines that the cloud itself ended, or announced the end of
}

// Machine is one line of the cloud's bill.
type Machine struct {
	ID, Node string
	From, To time.Time // To is now while it stands
	Live     bool
	Cost     money.MicroUSD
}

func newCloud() (*Cloud, error) {
	r := ec2test.New(ec2test.Config{
		Zones: []string{zone},
		Types: []ec2test.Type{{Name: kind, GPU: gpuName, GPUs: perNode, MemoryMiB: memory, VCPUs: 48,
			OnDemand: onDemand, Spot: spot}},
		Pending: 2 * time.Second, Report: time.Millisecond, Ending: time.Second,
	}, clock.System{})
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the cloud: %w", err)
	}
	c := &Cloud{
		region: r, server: httpx.NewServer("", r), Port: l.Addr().(*net.TCPAddr).Port, taken: map[string]bool{},
		ForeignStands: r.Foreign(kind, map[string]string{ownerTag: "somebody-else", nodeTag: "nod_of_somebody_else",
			"forewarm:token": "x"}),
	}
	go func() { _ = c.server.Serve(l) }() // it ends when the cloud is closed
	return c, nil
}

func (c *Cloud) closeServer() error {
	if err := c.server.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("closing the cloud: %w", err)
	}
	return nil
}

// Bill is every machine that was ever made for the deployment, in the order of
// their birth.
func (c *Cloud) Bill() []Machine {
	var all []Machine
	for _, line := range c.region.Bill() {
		if line.Tags[ownerTag] != deployment {
			continue
		}
		standing := line.State == "pending" || line.State == "running"
		all = append(all, Machine{ID: line.ID, Node: line.Tags[nodeTag], From: line.From, To: line.To,
			Live: standing, Cost: line.Cost})
	}
	return all
}

// CountLive counts the machines whose end has not begun.
func (c *Cloud) CountLive() int {
	n := 0
	for _, m := range c.Bill() {
		if m.Live {
			n++
		}
	}
	return n
}

// Calls of the cloud that faults hit.
const (
	Launch    = "RunInstances"
	Terminate = "TerminateInstances"
	Describe  = "DescribeInstances"
)

// LoseAnswers carries out the next calls of the action and cuts the connection
// instead of answering.
func (c *Cloud) LoseAnswers(action string, times int) {
	c.region.Inject(ec2test.Fault{Action: action, Effect: ec2test.LoseAnswer, Times: times})
}

// Refuse answers the next calls, whatever they are, with the code.
func (c *Cloud) Refuse(code string, times int) {
	c.region.Inject(ec2test.Fault{Effect: ec2test.Refuse, Code: code, Message: "as the schedule wants it",
		Times: times})
}

// Ignore says of the next machines to be ended that they are ending, and lets
// them live.
func (c *Cloud) Ignore(times int) {
	c.region.Inject(ec2test.Fault{Action: Terminate, Effect: ec2test.Ignore, Times: times})
}

// Garble leaves the id out of the last row of the next lists.
func (c *Cloud) Garble(times int) {
	c.region.Inject(ec2test.Fault{Action: Describe, Effect: ec2test.Garble, Times: times})
}

// Empty answers the next lists without a row, and says that there is no more.
func (c *Cloud) Empty(times int) {
	c.region.Inject(ec2test.Fault{Action: Describe, Effect: ec2test.Empty, Times: times})
}

// Lag shows the world as it was so long ago, until it is set to zero.
func (c *Cloud) Lag(lag time.Duration) { c.region.SetLag(lag, 0) }

// Stock lets the zone have at most so many machines at once.
func (c *Cloud) Stock(machines int) { c.region.SetStock(zone, kind, machines) }

// Plenty is more machines than are ever asked for.
const Plenty = 1000

// Reclaim announces the end of a machine that the spot market may take, and
// reports whether there was one.
func (c *Cloud) Reclaim(chance *rand.Rand) bool {
	var standing []string
	for _, line := range c.region.LiveLines() {
		if line.Market == "spot" && !c.Took(line.ID) {
			standing = append(standing, line.ID)
		}
	}
	if len(standing) == 0 {
		return false
	}
	id := standing[chance.IntN(len(standing))]
	c.mu.Lock()
	c.taken[id] = true
	c.mu.Unlock()
	c.region.Reclaim(id)
	return true
}

// Took reports whether the cloud itself took the machine away.
func (c *Cloud) Took(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[id]
}

// Heal takes back every fault.
func (c *Cloud) Heal() {
	c.region.Mend()
	c.Lag(0)
	c.Stock(Plenty)
}
