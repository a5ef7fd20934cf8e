//go:build clouds

package gcp

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// Get returns the machine as it is now. One that is gone is Terminated for as
// long as its operations or its record are kept.
func (c *Cloud) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	place, valid := parseRef(id)
	if !valid {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	shown, err := c.lookUp(ctx, place, c.readProbe)
	if err != nil {
		return provisioners.Instance{}, err
	}
	c.saveMemory()
	return shown, nil
}

// saveMemory saves what reading taught. It is only a guard behind the guards: a disk
// that is full must not blind the control plane, and Create and Delete say so.
func (c *Cloud) saveMemory() { _ = c.memory.saveRecords() }

// lookUp returns the machine at the place. A name that now belongs to another
// number is proof enough that this one is gone.
func (c *Cloud) lookUp(ctx context.Context, place ref, probe prober) (provisioners.Instance, error) {
	found, err := c.getInstance(ctx, place.zone, place.name)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if found != nil && found.Id == place.number {
		return c.presentInstance(ctx, found, probe)
	}
	return c.answerAbsent(ctx, place)
}

// List returns the owner's machines in all zones of the project, configured ones
// or not. A zone that cannot be reached and a machine whose tags cannot be read
// make it incomplete.
func (c *Cloud) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	if owner == "" {
		return provisioners.List{Complete: true}, nil // no machine is made without an owner
	}
	found, complete, err := c.listInstances(ctx, owner)
	if err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: complete}
	for _, i := range found {
		read, tagged := tagsOf(i)
		switch {
		case !tagged:
			list.Complete = false
		case read.owner != owner, i.Name != nameOf(read.token):
			// Somebody's copy of a machine of ours has its labels, and another name.
		default:
			shown, err := c.presentInstance(ctx, i, c.lastProbe)
			if err != nil {
				return provisioners.List{}, err
			}
			list.Instances = append(list.Instances, shown)
		}
	}
	c.saveMemory()
	return list, nil
}

// listInstances reads every page of the instances that are labelled as the owner's.
func (c *Cloud) listInstances(ctx context.Context, owner string) (all []*compute.Instance, complete bool, err error) {
	api, err := c.computeService(ctx)
	if err != nil {
		return nil, false, err
	}
	complete = true
	token := ""
	for range mostPages {
		page, err := c.config.instancesPage(ctx, api, owner, token)
		if err != nil {
			return nil, false, attempt{doing: "listing instances"}.callError(err)
		}
		complete = complete && isComplete(page)
		for _, scope := range page.Items {
			all = append(all, scope.Instances...)
		}
		if token = page.NextPageToken; token == "" {
			return all, complete, nil
		}
	}
	return all, false, nil
}

func (c Config) instancesPage(ctx context.Context, api *compute.Service, owner,
	token string) (*compute.InstanceAggregatedList, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	call := api.Instances.AggregatedList(c.Project).Filter(fmt.Sprintf("labels.%s=%q", ownerKey,
		labelValue(owner))).MaxResults(pageSize)
	return call.ReturnPartialSuccess(true).PageToken(token).Context(ctx).Do()
}

// isComplete reports whether the page speaks for every zone. A zone without rows says
// so in a warning, which is none.
func isComplete(page *compute.InstanceAggregatedList) bool {
	if len(page.Unreachables) > 0 || page.Warning != nil && page.Warning.Code != "NO_RESULTS_ON_PAGE" {
		return false
	}
	for _, scope := range page.Items {
		if scope.Warning != nil && scope.Warning.Code != "NO_RESULTS_ON_PAGE" {
			return false
		}
	}
	return true
}
