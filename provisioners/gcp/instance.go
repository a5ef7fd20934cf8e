//go:build clouds

package gcp

import (
	"context"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

// prober reads a machine's report.
type prober func(context.Context, ref) (reading, error)

// presentInstance is the machine as the port shows it, and is remembered. It runs when
// Google says so and its own report was read.
func (c *Cloud) presentInstance(ctx context.Context, found *compute.Instance, probe prober) (
	provisioners.Instance, error) {
	place := refOf(found)
	read, _ := tagsOf(found) // without tags it is still the machine with that id
	shown := provisioners.Instance{
		ID: place.String(), Token: read.token, Owner: read.owner, NodeID: read.node, Type: read.kind,
		Phase: phaseOf(found.Status), CreatedAt: parseTime(found.CreationTimestamp),
	}
	switch shown.Phase {
	case provisioners.Running:
		if err := c.fillRunning(ctx, found, &shown, probe); err != nil {
			return provisioners.Instance{}, err
		}
	case provisioners.Terminated:
		shown.EndedAt = parseTime(found.LastStopTimestamp)
	}
	c.memory.rememberInstances(shown)
	return shown, nil
}

// fillRunning fills in what only a running machine has, and takes back that it runs
// when its GPUs are not known.
func (c *Cloud) fillRunning(ctx context.Context, found *compute.Instance, shown *provisioners.Instance,
	probe prober) error {
	place := refOf(found)
	var read reading
	if c.config.Probe == GuestAttributes {
		var err error
		if read, err = probe(ctx, place); err != nil {
			return err
		}
	}
	offer, _ := c.config.configuredOffer(shown.Type, place.zone)
	shown.Devices = c.config.devicesOf(place, offer, read)
	shown.Notice = noticeOf(found, offer, read, c.clock.Now())
	if host := addressOf(found); host != "" {
		shown.Address = access.Address{Kind: access.SSH, User: c.config.LoginUser, Host: host}.String()
	}
	if len(shown.Devices) == 0 || shown.Address == "" {
		shown.Phase, shown.Devices, shown.Address = provisioners.Booting, nil, ""
	}
	return nil
}

// phaseOf sorts Google's statuses. A machine that is suspended or under repair is
// billed and cannot be used; an unknown status is taken for that too.
func phaseOf(status string) provisioners.Phase {
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

func addressOf(i *compute.Instance) string {
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

// instanceOfInsert is a machine of which so far only the insert operation can be seen.
func instanceOfInsert(op *compute.Operation, place ref, t tags) provisioners.Instance {
	return provisioners.Instance{
		ID: place.String(), Token: t.token, Owner: t.owner, NodeID: t.node, Type: t.kind,
		Phase: provisioners.Booting, CreatedAt: parseTime(op.InsertTime),
	}
}

// answerAbsent answers for a machine that Google does not know by its name any more:
// from its operations, and from what was remembered.
func (c *Cloud) answerAbsent(ctx context.Context, place ref) (provisioners.Instance, error) {
	id := place.String()
	known, remembered := c.memory.byID(id)
	if remembered && !known.Gone.IsZero() && !known.Ended.IsZero() {
		return known.portInstance(), nil
	}
	told, err := c.readPast(ctx, place.zone, place.name)
	if err != nil {
		return provisioners.Instance{}, err
	}
	insert := told.insertOf(place.number)
	ended, certain := told.endOf(place.number)
	switch {
	case insert != nil && insert.Status != "DONE" && !certain:
		return instanceOfInsert(insert, place, tags{known.Token, known.Ask.Owner, known.Ask.NodeID, known.Ask.Type}),
			nil
	case insert == nil && !certain && !remembered:
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindNotFound, "no machine %q", id)
	}
	if insert != nil && insert.Error == nil && !certain { // it may have come up between the two questions
		if found, err := c.getInstance(ctx, place.zone, place.name); err != nil || found != nil &&
			found.Id == place.number {
			return c.presentLate(ctx, found, err)
		}
	}
	if insert != nil && insert.Error != nil && ended.IsZero() {
		ended = parseTime(insert.InsertTime) // it never was, and costs nothing
	}
	c.probes.dropReading(place.number)
	c.memory.rememberGone(id, ended)
	return c.goneInstance(place, insert, ended), nil
}

func (c *Cloud) presentLate(ctx context.Context, found *compute.Instance, err error) (provisioners.Instance, error) {
	if err != nil {
		return provisioners.Instance{}, err
	}
	return c.presentInstance(ctx, found, c.readProbe)
}

// goneInstance is a machine that is no more, as far as it is remembered.
func (c *Cloud) goneInstance(place ref, insert *compute.Operation, ended time.Time) provisioners.Instance {
	if known, remembered := c.memory.byID(place.String()); remembered {
		return known.portInstance()
	}
	left := provisioners.Instance{ID: place.String(), Phase: provisioners.Terminated, EndedAt: ended}
	if insert != nil {
		left.CreatedAt = parseTime(insert.InsertTime)
	}
	return left
}
