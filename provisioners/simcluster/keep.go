package simcluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

// keeping is one node's time in keeping: an instance of the port.
type keeping struct {
	ID, Token string
	Spec      provisioners.Spec
	Node      string
	Born      time.Time
	Ended     time.Time // zero while it lasts
}

const (
	// tokenMemory is how long a token is known after its instance's end.
	tokenMemory = 24 * time.Hour
	// shownFor is how long Get and List show an instance that is over.
	shownFor = 10 * time.Minute
)

// Create takes a node into keeping: one that is up and idle, else one that powers up and
// has no work, else a cold one, which it powers up.
func (c *Cluster) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	if err := spec.Check(token); err != nil {
		return provisioners.Instance{}, err
	}
	k := c.keepings[token]
	if k != nil && k.Spec != spec.Identity() {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec, "the token was used for %+v", k.Spec)
	}
	if k == nil {
		n, err := c.chooseNode(spec)
		if err != nil {
			return provisioners.Instance{}, err
		}
		k = c.keepNode(n, token, spec)
	}
	if err := c.saveState(); err != nil {
		return provisioners.Instance{}, err
	}
	return c.portInstance(k), nil
}

// chooseNode finds the node that is warm soonest.
func (c *Cluster) chooseNode(spec provisioners.Spec) (*node, error) {
	if _, found := c.config.findOffer(spec.Type); !found || spec.Region != "" && spec.Region != c.config.Region {
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", spec.Type, spec.Region)
	}
	for _, wanted := range []power{up, powering, cold} {
		for _, n := range c.nodes {
			if n.offer.Type == spec.Type && n.Power == wanted && n.jobs == 0 && n.kept == nil {
				return n, nil
			}
		}
	}
	return nil, &provisioners.Error{Kind: provisioners.KindCapacity, Scope: c.config.Region + "/" + spec.Type,
		Message: "every node has work or is kept already"}
}

func (c *Cluster) keepNode(n *node, token string, spec provisioners.Spec) *keeping {
	c.powerUp(n)
	k := &keeping{ID: c.config.instanceID(token, c.at), Token: token, Spec: spec.Identity(), Node: n.Name, Born: c.at}
	n.kept, n.Active, c.keepings[token], c.dirty = k, c.at, k, true
	return k
}

// Get returns the instance as it is now.
func (c *Cluster) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	k := c.findKeeping(id)
	if k == nil {
		return provisioners.Instance{}, notFound(id)
	}
	return c.portInstance(k), c.saveState()
}

// List returns the owner's instances by birth.
func (c *Cluster) List(ctx context.Context, owner string) (provisioners.List, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: true}
	for _, k := range c.keepings {
		if k.Spec.Owner == owner && c.isShown(k) {
			list.Instances = append(list.Instances, c.portInstance(k))
		}
	}
	slices.SortFunc(list.Instances, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, c.saveState()
}

// Delete ends the keeping. The node and its work go on.
func (c *Cluster) Delete(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return err
	}
	if k := c.findKeeping(id); k != nil && k.Ended.IsZero() {
		k.Ended, c.findNode(k.Node).kept, c.dirty = c.at, nil, true
	}
	return c.saveState()
}

// Keep puts the suspension of the nodes off until SuspendTime from now.
func (c *Cluster) Keep(ctx context.Context, ids []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enterCall(ctx); err != nil {
		return err
	}
	var failed []error
	for _, id := range ids {
		if k := c.findKeeping(id); k != nil && k.Ended.IsZero() {
			c.findNode(k.Node).Active, c.dirty = c.at, true
			continue
		}
		failed = append(failed, notFound(id))
	}
	return errors.Join(append(failed, c.saveState())...)
}

func notFound(id string) error {
	return &provisioners.Error{Kind: provisioners.KindNotFound, Scope: id,
		Message: "the simulated cluster keeps no such node"}
}

// findKeeping finds what Get shows.
func (c *Cluster) findKeeping(id string) *keeping {
	for _, k := range c.keepings {
		if k.ID == id && c.isShown(k) {
			return k
		}
	}
	return nil
}

func (c *Cluster) isShown(k *keeping) bool {
	return k.Ended.IsZero() || c.at.Before(k.Ended.Add(shownFor))
}

func (c *Cluster) portInstance(k *keeping) provisioners.Instance {
	instance := provisioners.Instance{ID: k.ID, Token: k.Token, Owner: k.Spec.Owner, NodeID: k.Spec.NodeID,
		Type: k.Spec.Type, Phase: provisioners.Booting, CreatedAt: k.Born, EndedAt: k.Ended, Simulated: true}
	if !k.Ended.IsZero() {
		instance.Phase = provisioners.Terminated
	} else if n := c.findNode(k.Node); n.Power == up {
		instance.Phase = provisioners.Running
		instance.Address = access.Address{Kind: access.Simulated, Host: n.Name}.String()
		instance.Devices = c.config.listDevices(n)
	}
	return instance
}
