// Package sim is a cloud that does not exist: boot times, stock-outs, faults and
// a bill like a real one, on a clock that its user owns.
//
// Nothing in it runs or waits. A machine is a few instants fixed at its birth
// and computed against the clock when somebody looks, so that a year of cloud
// fits into a second of test, and the same seed gives the same cloud. Every
// machine says Simulated.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
)

// Cloud is the simulated provider. It is safe for concurrent use.
type Cloud struct {
	clock clock.Clock

	mu      sync.Mutex
	config  Config
	shown   map[string]*machine // by id: all that Get and List answer
	tokens  map[string]*machine // by token: all that Create answers
	taken   map[[2]string]int   // machines that stand, by type and region
	pending events
	settled Sum // machines that are forgotten
	faults  map[Op][]Fault
	dirty   bool // the state file is older than the maps
}

var (
	_ provisioners.Provisioner = (*Cloud)(nil)
	_ provisioners.Renewer     = (*Cloud)(nil)
	_ provisioners.Exclusive   = (*Cloud)(nil)
)

// New opens the cloud: empty, or as its state file says. It fails on a bad
// config and on a damaged file.
func New(config Config, clock clock.Clock) (*Cloud, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring simulated cloud %q: %w", config.Name, err)
	}
	c := &Cloud{
		clock: clock, config: config,
		shown: map[string]*machine{}, tokens: map[string]*machine{}, taken: map[[2]string]int{},
		faults: map[Op][]Fault{},
	}
	if err := c.loadState(); err != nil {
		return nil, fmt.Errorf("opening simulated cloud %q: %w", config.Name, err)
	}
	for _, fault := range config.Faults {
		c.faults[fault.Op] = append(c.faults[fault.Op], fault)
	}
	return c, nil
}

// Name returns the configured name.
func (c *Cloud) Name() string { return c.config.Name }

// Exclusive says that the simulation is known to one process.
func (c *Cloud) Exclusive() {}

// Offers lists the configured machine types.
func (c *Cloud) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, _, err := c.beginCall(ctx, OpOffers); err != nil {
		return nil, err
	}
	offers := make([]provisioners.Offer, len(c.config.Offers))
	for i, offer := range c.config.Offers {
		offers[i] = offer.portOffer()
	}
	return offers, nil
}

// Create makes a machine, or returns the one that the token made.
func (c *Cloud) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, fault, err := c.beginCall(ctx, OpCreate)
	if err != nil {
		return provisioners.Instance{}, err
	}
	m, err := c.findMachine(token, spec)
	if err == nil && m == nil {
		m, err = c.makeMachine(token, spec, now, fault)
	}
	if err != nil {
		return provisioners.Instance{}, err
	}
	if err := cmp.Or(c.saveState(), fault.timedOut(OpCreate)); err != nil {
		return provisioners.Instance{}, err
	}
	return m.instanceAt(now), nil
}

// findMachine returns the machine of the token, nil when there is none.
func (c *Cloud) findMachine(token string, spec provisioners.Spec) (*machine, error) {
	if err := spec.Check(token); err != nil {
		return nil, err
	}
	m := c.tokens[token]
	if m != nil && m.Spec.Identity() != spec.Identity() {
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "the token was used for %+v", m.Spec)
	}
	return m, nil
}

func (c *Cloud) makeMachine(token string, spec provisioners.Spec, now time.Time, fault Fault) (*machine, error) {
	offer, err := c.findOffer(spec)
	if err != nil {
		return nil, err
	}
	key := [2]string{offer.Type, offer.Region}
	if offer.Stock > 0 && c.taken[key] >= offer.Stock || c.soldOut(offer, now) {
		return nil, &provisioners.Error{
			Kind: provisioners.KindCapacity, Scope: offer.Region + "/" + offer.Type, Message: "out of stock",
		}
	}
	boot := offer.Boot.drawBoot(newRand(c.config.Seed, "boot", c.config.Name, token))
	m := &machine{ID: c.instanceID(token, now), Token: token, Spec: spec, Offer: offer, Born: now, Ready: now.Add(boot)}
	c.shown[m.ID], c.tokens[token] = m, m
	c.taken[key]++
	c.dirty = true
	if fault.Effect == BootNever || fault.Effect == BootDies {
		m.Ready = time.Time{}
	}
	if fault.Effect == BootDies {
		c.endMachine(m, now.Add((boot / 2).Truncate(time.Microsecond)))
	}
	if m.Expires = spec.ExpiresAt; !m.Expires.IsZero() {
		c.endMachine(m, laterOf(m.Expires, now))
	}
	if at, drawn := offer.drawReclaim(newRand(c.config.Seed, "reclaim", c.config.Name, token), now); drawn {
		c.reclaimMachine(m, at)
	}
	return m, nil
}

// findOffer finds what the spec asks for. A spec without a region takes the first
// offer of the type.
func (c *Cloud) findOffer(spec provisioners.Spec) (Offer, error) {
	for _, offer := range c.config.Offers {
		if offer.Type == spec.Type && (spec.Region == "" || offer.Region == spec.Region) {
			return offer, nil
		}
	}
	return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", spec.Type, spec.Region)
}

// Get returns the machine as it is now.
func (c *Cloud) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, fault, err := c.beginCall(ctx, OpGet)
	if err != nil {
		return provisioners.Instance{}, err
	}
	m := c.shown[id]
	if m == nil || fault.Effect == Deny {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	return m.instanceAt(now), nil
}

// List returns the owner's machines by birth, as they were Config.ListLag ago.
func (c *Cloud) List(ctx context.Context, owner string) (provisioners.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, fault, err := c.beginCall(ctx, OpList)
	if err != nil {
		return provisioners.List{}, err
	}
	then := now.Add(-c.config.ListLag)
	list := provisioners.List{Complete: true}
	for _, m := range c.shown {
		if m.Spec.Owner == owner && !m.Born.After(then) {
			list.Instances = append(list.Instances, m.instanceAt(then))
		}
	}
	slices.SortFunc(list.Instances, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if fault.Effect == Truncate {
		list = provisioners.List{Instances: list.Instances[:len(list.Instances)/2]}
	}
	return list, nil
}

// Delete starts the machine's end.
func (c *Cloud) Delete(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, fault, err := c.beginCall(ctx, OpDelete)
	if err != nil {
		return err
	}
	m := c.shown[id]
	if m != nil && fault.Effect != Ignore && !hasReached(m.Deleted, now) && !hasReached(m.Ended, now) {
		m.Deleted = now
		c.endMachine(m, now.Add(c.config.Terminating))
	}
	return cmp.Or(c.saveState(), fault.timedOut(OpDelete))
}

// Renew moves the machine's own end. A machine that ends sooner for another
// reason still does.
func (c *Cloud) Renew(ctx context.Context, id string, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _, err := c.beginCall(ctx, OpRenew)
	if err != nil {
		return err
	}
	m := c.shown[id]
	if m == nil || hasReached(m.Ended, now) {
		return provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	if m.Expires.IsZero() || !until.After(m.Expires) || hasReached(m.Deleted, now) {
		return nil
	}
	if m.Ended.Equal(m.Expires) {
		m.Ended = m.Reclaimed
	}
	m.Expires = until
	c.endMachine(m, until)
	return c.saveState()
}

// LivePerNode counts, for each node id, the machines that exist and are not
// Terminated: what a ledger must never see above one.
func (c *Cloud) LivePerNode() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.advanceMachines()
	counts := map[string]int{}
	for _, m := range c.shown {
		if !hasReached(m.Ended, now) {
			counts[m.Spec.NodeID]++
		}
	}
	return counts
}
