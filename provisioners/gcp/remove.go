//go:build clouds

package gcp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// Delete asks for the machine's end. A machine that has stopped is deleted too:
// its disk is still billed.
func (c *Cloud) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	place, valid := parseRef(id)
	if !valid {
		return nil
	}
	found, err := c.getInstance(ctx, place.zone, place.name)
	if err != nil {
		return err
	}
	if found == nil || found.Id != place.number {
		return c.confirmDeleted(ctx, place)
	}
	if read, tagged := tagsOf(found); tagged { // its token is known once it is gone
		c.memory.rememberInstances(provisioners.Instance{
			ID: id, Token: read.token, Owner: read.owner, NodeID: read.node, Type: read.kind,
			CreatedAt: parseTime(found.CreationTimestamp),
		})
	}
	if err := c.memory.saveRecords(); err != nil {
		return &provisioners.Error{Kind: provisioners.KindTransient, Message: "remembering machine " + id, Err: err}
	}
	return c.deleteInstance(ctx, place, found.Status)
}

// confirmDeleted makes sure that a machine that is not there is not about to be.
func (c *Cloud) confirmDeleted(ctx context.Context, place ref) error {
	left, err := c.answerAbsent(ctx, place)
	switch {
	case provisioners.KindOf(err) == provisioners.KindNotFound && err != nil:
		return nil
	case err != nil:
		return err
	case left.Phase == provisioners.Booting:
		return provisioners.Errorf(provisioners.KindTransient, "machine %s is still being made", place)
	}
	c.saveMemory()
	return nil
}

// deleteInstance deletes by name; that the name has the right number was looked at a moment
// ago, and another machine of that name would have the same token. There is no
// requestId: an end that Google forgot must be asked for anew.
func (c *Cloud) deleteInstance(ctx context.Context, place ref, status string) error {
	api, err := c.computeService(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := c.config.withDeadline(ctx)
	defer cancel()
	_, err = api.Instances.Delete(c.config.Project, place.zone, place.name).Context(ctx).Do()
	switch {
	case err == nil, notFound(err):
		return nil
	case hasReason(err, "resourceNotReady"):
		return c.answerEnding(ctx, place, status)
	}
	return attempt{doing: "deleting instance " + place.name}.callError(err)
}

// answerEnding is for a machine that Google does not take an end for now: it may be on
// its way out.
func (c *Cloud) answerEnding(ctx context.Context, place ref, status string) error {
	if phaseOf(status) == provisioners.Terminating {
		return nil
	}
	told, err := c.readPast(ctx, place.zone, place.name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(told.others, func(op *compute.Operation) bool {
		return op.OperationType == "delete" && op.TargetId == place.number && op.Status != "DONE"
	}) {
		return nil
	}
	return provisioners.Errorf(provisioners.KindTransient, "deleting instance %s: it is not ready for that", place.name)
}

// mostRaces is how often somebody else may change the metadata first.
const mostRaces = 3

// Renew moves the time in the machine's metadata after which the start-up script
// powers it off. A machine that was made without one never ends by itself, which
// is later than any.
func (c *Cloud) Renew(ctx context.Context, id string, until time.Time) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	place, valid := parseRef(id)
	if !valid {
		return provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	var err error
	for range mostRaces {
		if err = c.renewExpiry(ctx, place, until); !errors.Is(err, errRaced) {
			return err
		}
	}
	return &provisioners.Error{Kind: provisioners.KindTransient, Message: "renewing machine " + id, Err: err}
}

var errRaced = errors.New("somebody else changed its metadata")

func (c *Cloud) renewExpiry(ctx context.Context, place ref, until time.Time) error {
	found, err := c.getInstance(ctx, place.zone, place.name)
	switch {
	case err != nil:
		return err
	case found == nil || found.Id != place.number:
		return c.renewError(ctx, place)
	case phaseOf(found.Status) == provisioners.Terminating, phaseOf(found.Status) == provisioners.Terminated:
		return provisioners.Errorf(provisioners.KindNotFound, "machine %s has ended", place)
	}
	text, set := metadataValue(found, guest.ExpiresKey)
	current, err := strconv.ParseInt(text, 10, 64)
	if !set || err == nil && until.Unix() <= current {
		return nil
	}
	return c.setExpiry(ctx, place, found.Metadata, until)
}

func (c *Cloud) renewError(ctx context.Context, place ref) error {
	left, err := c.answerAbsent(ctx, place)
	if err == nil && left.Phase == provisioners.Booting {
		return provisioners.Errorf(provisioners.KindTransient, "machine %s is still being made", place)
	}
	if err != nil {
		return err
	}
	return provisioners.Errorf(provisioners.KindNotFound, "machine %s has ended", place)
}

// setExpiry replaces the whole metadata, under the fingerprint that it was read
// with.
func (c *Cloud) setExpiry(ctx context.Context, place ref, metadata *compute.Metadata, until time.Time) error {
	api, err := c.computeService(ctx)
	if err != nil {
		return err
	}
	value := strconv.FormatInt(until.Unix(), 10)
	changed := &compute.Metadata{Fingerprint: metadata.Fingerprint}
	for _, entry := range metadata.Items {
		if entry.Key == guest.ExpiresKey {
			entry = &compute.MetadataItems{Key: entry.Key, Value: &value}
		}
		changed.Items = append(changed.Items, entry)
	}
	doing := attempt{doing: "renewing instance " + place.name}
	op, err := c.config.sendMetadata(ctx, api, place, changed)
	switch {
	case hasStatus(err, http.StatusPreconditionFailed):
		return errRaced
	case err != nil:
		return doing.callError(err)
	}
	if op = c.awaitOperation(ctx, place.zone, op); op.Status != "DONE" {
		return provisioners.Errorf(provisioners.KindTransient, "%s: not done yet", doing.doing)
	}
	return doing.operationError(op)
}

func (c Config) sendMetadata(ctx context.Context, api *compute.Service, place ref,
	changed *compute.Metadata) (*compute.Operation, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	return api.Instances.SetMetadata(c.Project, place.zone, place.name, changed).Context(ctx).Do()
}
