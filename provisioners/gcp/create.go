//go:build clouds

package gcp

import (
	"context"
	"net/http"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// order is what one call of Create asks for.
type order struct {
	token string
	spec  provisioners.Spec // with the region set
	offer Offer
}

func (o order) name() string { return nameOf(o.token) }

func (o order) attempt() attempt {
	return attempt{doing: "making instance " + o.name(), scope: o.offer.Zone + "/" + o.offer.MachineType, makes: true}
}

// Create asks for the machine. It waits for a stock-out to show, not for the
// boot. Before it asks it looks for the machine that the token may have had: in
// what was remembered, under the token's name, and in the zone's operations.
func (c *Cloud) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	if err := spec.Check(token); err != nil {
		return provisioners.Instance{}, err
	}
	offer, err := c.offer(spec)
	if err != nil {
		return provisioners.Instance{}, err
	}
	spec.Region = offer.Zone
	made, err := c.find(ctx, order{token: token, spec: spec, offer: offer})
	if err != nil {
		return provisioners.Instance{}, err
	}
	if err := c.memory.save(); err != nil {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindUnknown,
			Message: "remembering machine " + made.ID, Err: err}
	}
	return made, nil
}

func (c *Cloud) find(ctx context.Context, o order) (provisioners.Instance, error) {
	if known, remembered := c.memory.byToken(o.token); remembered {
		if known.Ask != o.spec.Ask() {
			return provisioners.Instance{}, otherSpec(o)
		}
		place, _ := parseRef(known.ID)
		return c.look(ctx, place, c.probe)
	}
	found, err := c.instance(ctx, o.offer.Zone, o.name())
	if err != nil {
		return provisioners.Instance{}, err
	}
	if found != nil {
		return c.ours(ctx, o, found)
	}
	told, err := c.past(ctx, o.offer.Zone, o.name())
	if err != nil {
		return provisioners.Instance{}, err
	}
	return c.proceed(ctx, o, told)
}

// proceed decides by what became of earlier inserts. The same token inserts
// again only when every one before failed in a way that another try may mend.
func (c *Cloud) proceed(ctx context.Context, o order, told past) (provisioners.Instance, error) {
	tries := len(told.inserts)
	if tries == 0 {
		return c.insert(ctx, o, 0)
	}
	newest := told.inserts[tries-1]
	if !o.asked(newest, tries) {
		return provisioners.Instance{}, otherSpec(o)
	}
	_, ended := told.ended(newest.TargetId)
	failure := o.attempt().operation(newest)
	if newest.Status != "DONE" || failure == nil || ended {
		return c.await(ctx, o, newest)
	}
	if provisioners.Final(failure) {
		return provisioners.Instance{}, failure
	}
	return c.insert(ctx, o, tries)
}

// asked reports whether the operation is one of this order's tries, by its
// request id.
func (o order) asked(op *compute.Operation, tries int) bool {
	for try := range tries {
		if op.ClientOperationId == requestID(o.token, o.spec, try) {
			return true
		}
	}
	return false
}

func otherSpec(o order) error {
	return provisioners.Errorf(provisioners.KindBadSpec, "the token of instance %s was used for something else",
		o.name())
}

func (c *Cloud) insert(ctx context.Context, o order, try int) (provisioners.Instance, error) {
	api, err := c.service(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	op, err := c.send(ctx, api, o, try)
	if answered(err, http.StatusConflict) {
		return c.adopt(ctx, o, err)
	}
	if err != nil {
		return provisioners.Instance{}, o.attempt().failed(err)
	}
	if op.Name == "" || op.TargetId == 0 || last(op.TargetLink) != o.name() {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown,
			"making instance %s: the answer is about something else", o.name())
	}
	return c.await(ctx, o, op)
}

func (c *Cloud) send(ctx context.Context, api *compute.Service, o order, try int) (*compute.Operation, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	call := api.Instances.Insert(c.config.Project, o.offer.Zone, c.build(o.token, o.spec, o.offer))
	return call.RequestId(requestID(o.token, o.spec, try)).Context(ctx).Do()
}

// adopt is for a name that is taken: by another call with the same token, a
// moment ago.
func (c *Cloud) adopt(ctx context.Context, o order, conflict error) (provisioners.Instance, error) {
	found, err := c.instance(ctx, o.offer.Zone, o.name())
	if err != nil {
		return provisioners.Instance{}, o.unknown(err)
	}
	if found == nil {
		return provisioners.Instance{}, o.attempt().failed(conflict)
	}
	return c.ours(ctx, o, found)
}

// ours answers the instance that has the token's name, if it is what is asked
// for.
func (c *Cloud) ours(ctx context.Context, o order, found *compute.Instance) (provisioners.Instance, error) {
	read, tagged := tagsOf(found)
	if !tagged || read != tagsFor(o.token, o.spec) {
		return provisioners.Instance{}, otherSpec(o)
	}
	made, err := c.present(ctx, found, c.probe)
	if err != nil {
		return provisioners.Instance{}, o.unknown(err)
	}
	return made, nil
}

// await answers the machine of an insert that was accepted, or why it will not
// be.
func (c *Cloud) await(ctx context.Context, o order, op *compute.Operation) (provisioners.Instance, error) {
	op = c.wait(ctx, o.offer.Zone, op)
	found, err := c.instance(ctx, o.offer.Zone, o.name())
	if err != nil {
		return provisioners.Instance{}, o.unknown(err)
	}
	if found != nil && found.Id == op.TargetId {
		return c.ours(ctx, o, found)
	}
	place := ref{zone: o.offer.Zone, name: o.name(), number: op.TargetId}
	if op.Status != "DONE" {
		made := asked(op, place, tagsFor(o.token, o.spec))
		c.memory.saw(made)
		return made, nil
	}
	return c.vanished(ctx, o, op, place)
}

// vanished is for an insert that is done and left no instance: it failed, or its
// machine has ended since.
func (c *Cloud) vanished(ctx context.Context, o order, op *compute.Operation,
	place ref) (provisioners.Instance, error) {
	told, err := c.past(ctx, place.zone, place.name)
	if err != nil {
		return provisioners.Instance{}, o.unknown(err)
	}
	at, ended := told.ended(place.number)
	if failure := o.attempt().operation(op); failure != nil && !ended {
		return provisioners.Instance{}, failure
	}
	made := asked(op, place, tagsFor(o.token, o.spec))
	made.Phase, made.EndedAt = provisioners.Terminated, at
	c.memory.saw(made)
	c.memory.gone(made.ID, at)
	return made, nil
}

// unknown is the error of what failed after a machine may have been made.
func (o order) unknown(err error) error {
	return &provisioners.Error{Kind: provisioners.KindUnknown, Message: o.attempt().doing, Err: err}
}
