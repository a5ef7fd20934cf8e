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
	// daemon is the script that starts the node's daemon; empty: there is none.
	daemon string
}

func (o order) instanceName() string { return nameOf(o.token) }

func (o order) newAttempt() attempt {
	return attempt{doing: "making instance " + o.instanceName(), scope: o.offer.Zone + "/" + o.offer.MachineType,
		makes: true}
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
	offer, err := c.config.findOffer(spec)
	if err != nil {
		return provisioners.Instance{}, err
	}
	spec.Region = offer.Zone
	daemon, err := c.config.renderDaemon(spec)
	if err != nil {
		return provisioners.Instance{}, err
	}
	made, err := c.findExisting(ctx, order{token: token, spec: spec, offer: offer, daemon: daemon})
	if err != nil {
		return provisioners.Instance{}, err
	}
	if err := c.memory.saveRecords(); err != nil {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindUnknown,
			Message: "remembering machine " + made.ID, Err: err}
	}
	return made, nil
}

func (c *Cloud) findExisting(ctx context.Context, o order) (provisioners.Instance, error) {
	if known, remembered := c.memory.byToken(o.token); remembered {
		if known.Ask != o.spec.Identity() {
			return provisioners.Instance{}, otherSpec(o)
		}
		place, _ := parseRef(known.ID)
		return c.lookUp(ctx, place, c.readProbe)
	}
	found, err := c.getInstance(ctx, o.offer.Zone, o.instanceName())
	if err != nil {
		return provisioners.Instance{}, err
	}
	if found != nil {
		return c.checkOurs(ctx, o, found)
	}
	told, err := c.readPast(ctx, o.offer.Zone, o.instanceName())
	if err != nil {
		return provisioners.Instance{}, err
	}
	return c.continueInserts(ctx, o, told)
}

// continueInserts decides by what became of earlier inserts. The same token inserts
// again only when every one before failed in a way that another try may mend.
func (c *Cloud) continueInserts(ctx context.Context, o order, told past) (provisioners.Instance, error) {
	tries := len(told.inserts)
	if tries == 0 {
		return c.insertInstance(ctx, o, 0)
	}
	newest := told.inserts[tries-1]
	if !o.isOwnInsert(newest, tries) {
		return provisioners.Instance{}, otherSpec(o)
	}
	_, ended := told.endOf(newest.TargetId)
	failure := o.newAttempt().operationError(newest)
	if newest.Status != "DONE" || failure == nil || ended {
		return c.awaitInsert(ctx, o, newest)
	}
	if provisioners.Final(failure) {
		return provisioners.Instance{}, failure
	}
	return c.insertInstance(ctx, o, tries)
}

// isOwnInsert reports whether the operation is one of this order's tries, by its
// request id.
func (o order) isOwnInsert(op *compute.Operation, tries int) bool {
	for try := range tries {
		if op.ClientOperationId == requestID(o.token, o.spec, try) {
			return true
		}
	}
	return false
}

func otherSpec(o order) error {
	return provisioners.Errorf(provisioners.KindBadSpec, "the token of instance %s was used for something else",
		o.instanceName())
}

func (c *Cloud) insertInstance(ctx context.Context, o order, try int) (provisioners.Instance, error) {
	api, err := c.computeService(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	op, err := c.sendInsert(ctx, api, o, try)
	if hasStatus(err, http.StatusConflict) {
		return c.adoptConflicting(ctx, o, err)
	}
	if err != nil {
		return provisioners.Instance{}, o.newAttempt().callError(err)
	}
	if op.Name == "" || op.TargetId == 0 || lastSegment(op.TargetLink) != o.instanceName() {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindUnknown,
			"making instance %s: the answer is about something else", o.instanceName())
	}
	return c.awaitInsert(ctx, o, op)
}

func (c *Cloud) sendInsert(ctx context.Context, api *compute.Service, o order, try int) (*compute.Operation, error) {
	ctx, cancel := c.config.withDeadline(ctx)
	defer cancel()
	call := api.Instances.Insert(c.config.Project, o.offer.Zone, c.newInstance(o))
	return call.RequestId(requestID(o.token, o.spec, try)).Context(ctx).Do()
}

// adoptConflicting is for a name that is taken: by another call with the same token, a
// moment ago.
func (c *Cloud) adoptConflicting(ctx context.Context, o order, conflict error) (provisioners.Instance, error) {
	found, err := c.getInstance(ctx, o.offer.Zone, o.instanceName())
	if err != nil {
		return provisioners.Instance{}, o.unknownError(err)
	}
	if found == nil {
		return provisioners.Instance{}, o.newAttempt().callError(conflict)
	}
	return c.checkOurs(ctx, o, found)
}

// checkOurs answers the instance that has the token's name, if it is what is asked
// for.
func (c *Cloud) checkOurs(ctx context.Context, o order, found *compute.Instance) (provisioners.Instance, error) {
	read, tagged := tagsOf(found)
	if !tagged || read != tagsFor(o.token, o.spec) {
		return provisioners.Instance{}, otherSpec(o)
	}
	made, err := c.presentInstance(ctx, found, c.readProbe)
	if err != nil {
		return provisioners.Instance{}, o.unknownError(err)
	}
	return made, nil
}

// awaitInsert answers the machine of an insert that was accepted, or why it will not
// be.
func (c *Cloud) awaitInsert(ctx context.Context, o order, op *compute.Operation) (provisioners.Instance, error) {
	op = c.awaitOperation(ctx, o.offer.Zone, op)
	found, err := c.getInstance(ctx, o.offer.Zone, o.instanceName())
	if err != nil {
		return provisioners.Instance{}, o.unknownError(err)
	}
	if found != nil && found.Id == op.TargetId {
		return c.checkOurs(ctx, o, found)
	}
	place := ref{zone: o.offer.Zone, name: o.instanceName(), number: op.TargetId}
	if op.Status != "DONE" {
		made := instanceOfInsert(op, place, tagsFor(o.token, o.spec))
		c.memory.rememberInstances(made)
		return made, nil
	}
	return c.answerVanished(ctx, o, op, place)
}

// answerVanished is for an insert that is done and left no instance: it failed, or its
// machine has ended since.
func (c *Cloud) answerVanished(ctx context.Context, o order, op *compute.Operation,
	place ref) (provisioners.Instance, error) {
	told, err := c.readPast(ctx, place.zone, place.name)
	if err != nil {
		return provisioners.Instance{}, o.unknownError(err)
	}
	at, ended := told.endOf(place.number)
	if failure := o.newAttempt().operationError(op); failure != nil && !ended {
		return provisioners.Instance{}, failure
	}
	made := instanceOfInsert(op, place, tagsFor(o.token, o.spec))
	made.Phase, made.EndedAt = provisioners.Terminated, at
	c.memory.rememberInstances(made)
	c.memory.rememberGone(made.ID, at)
	return made, nil
}

// unknownError is the error of what failed after a machine may have been made.
func (o order) unknownError(err error) error {
	return &provisioners.Error{Kind: provisioners.KindUnknown, Message: o.newAttempt().doing, Err: err}
}
