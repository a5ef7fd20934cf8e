//go:build clouds

package gcp

import (
	"context"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// prober reads a machine's report.
type prober func(context.Context, ref) (reading, error)

// present is the machine as the port shows it, and is remembered. It runs when
// Google says so and its own report was read.
func (c *Cloud) present(ctx context.Context, found *compute.Instance, probe prober) (provisioners.Instance, error) {
	place := refOf(found)
	read, _ := tagsOf(found) // without tags it is still the machine with that id
	shown := provisioners.Instance{
		ID: place.String(), Token: read.token, Owner: read.owner, NodeID: read.node, Type: read.kind,
		Phase: phase(found.Status), CreatedAt: instant(found.CreationTimestamp),
	}
	switch shown.Phase {
	case provisioners.Running:
		if err := c.inspect(ctx, found, &shown, probe); err != nil {
			return provisioners.Instance{}, err
		}
	case provisioners.Terminated:
		shown.EndedAt = instant(found.LastStopTimestamp)
	}
	c.memory.saw(shown)
	return shown, nil
}

// inspect fills in what only a running machine has, and takes back that it runs
// when its GPUs are not known.
func (c *Cloud) inspect(ctx context.Context, found *compute.Instance, shown *provisioners.Instance,
	probe prober) error {
	place := refOf(found)
	var read reading
	if c.config.Probe == GuestAttributes {
		var err error
		if read, err = probe(ctx, place); err != nil {
			return err
		}
	}
	offer, _ := c.offered(shown.Type, place.zone)
	shown.Devices = c.devices(place, offer, read)
	shown.Notice = notice(found, offer, read, c.clock.Now())
	shown.Address = address(found)
	if len(shown.Devices) == 0 || shown.Address == "" {
		shown.Phase, shown.Devices, shown.Address = provisioners.Booting, nil, ""
	}
	return nil
}

// phase sorts Google's statuses. A machine that is suspended or under repair is
// billed and cannot be used; an unknown status is taken for that too.
func phase(status string) provisioners.Phase {
	switch status {
	case "RUNNING":
		return provisioners.Running
	case "PENDING_STOP", "STOPPING", "DEPROVISIONING":
		return provisioners.Terminating
	case "TERMINATED", "STOPPED":
		return provisioners.Terminated
	default: // PENDING, PROVISIONING, STAGING, REPAIRING, SUSPENDING, SUSPENDED
		return provisioners.Booting
	}
}

func address(i *compute.Instance) string {
	if len(i.NetworkInterfaces) == 0 {
		return ""
	}
	first := i.NetworkInterfaces[0]
	for _, access := range first.AccessConfigs {
		if access.NatIP != "" {
			return access.NatIP
		}
	}
	return first.NetworkIP
}

// asked is a machine of which so far only the insert operation can be seen.
func asked(op *compute.Operation, place ref, t tags) provisioners.Instance {
	return provisioners.Instance{
		ID: place.String(), Token: t.token, Owner: t.owner, NodeID: t.node, Type: t.kind,
		Phase: provisioners.Booting, CreatedAt: instant(op.InsertTime),
	}
}

// absent answers for a machine that Google does not know by its name any more:
// from its operations, and from what was remembered.
func (c *Cloud) absent(ctx context.Context, place ref) (provisioners.Instance, error) {
	id := place.String()
	known, remembered := c.memory.byID(id)
	if remembered && !known.Gone.IsZero() && !known.Ended.IsZero() {
		return known.instance(), nil
	}
	told, err := c.past(ctx, place.zone, place.name)
	if err != nil {
		return provisioners.Instance{}, err
	}
	insert := told.insert(place.number)
	ended, certain := told.ended(place.number)
	switch {
	case insert != nil && insert.Status != "DONE" && !certain:
		return asked(insert, place, tags{known.Token, known.Ask.Owner, known.Ask.NodeID, known.Ask.Type}), nil
	case insert == nil && !certain && !remembered:
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	if insert != nil && insert.Error == nil && !certain { // it may have come up between the two questions
		if found, err := c.instance(ctx, place.zone, place.name); err != nil || found != nil &&
			found.Id == place.number {
			return c.late(ctx, found, err)
		}
	}
	if insert != nil && insert.Error != nil && ended.IsZero() {
		ended = instant(insert.InsertTime) // it never was, and costs nothing
	}
	c.probes.forget(place.number)
	c.memory.gone(id, ended)
	return c.gone(place, insert, ended), nil
}

func (c *Cloud) late(ctx context.Context, found *compute.Instance, err error) (provisioners.Instance, error) {
	if err != nil {
		return provisioners.Instance{}, err
	}
	return c.present(ctx, found, c.probe)
}

// gone is a machine that is no more, as far as it is remembered.
func (c *Cloud) gone(place ref, insert *compute.Operation, ended time.Time) provisioners.Instance {
	if known, remembered := c.memory.byID(place.String()); remembered {
		return known.instance()
	}
	left := provisioners.Instance{ID: place.String(), Phase: provisioners.Terminated, EndedAt: ended}
	if insert != nil {
		left.CreatedAt = instant(insert.InsertTime)
	}
	return left
}
