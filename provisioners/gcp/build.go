//go:build clouds

package gcp

import (
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// build is the instance that is asked for.
func (c *Cloud) build(token string, spec provisioners.Spec, offer Offer) *compute.Instance {
	return &compute.Instance{
		Name:                nameOf(token),
		Description:         "A node of Forewarm's; see its labels.",
		MachineType:         "zones/" + offer.Zone + "/machineTypes/" + offer.MachineType,
		GuestAccelerators:   accelerators(offer),
		Scheduling:          scheduling(offer),
		ReservationAffinity: affinity(offer),
		Disks:               []*compute.AttachedDisk{c.disk(offer)},
		NetworkInterfaces:   []*compute.NetworkInterface{c.network(offer)},
		ServiceAccounts:     c.accounts(),
		Tags:                &compute.Tags{Items: c.config.Tags},
		Labels:              labels(token, spec),
		Metadata:            &compute.Metadata{Items: c.metadata(token, spec)},
	}
}

func accelerators(offer Offer) []*compute.AcceleratorConfig {
	if offer.AcceleratorType == "" {
		return nil
	}
	return []*compute.AcceleratorConfig{{
		AcceleratorType:  "zones/" + offer.Zone + "/acceleratorTypes/" + offer.AcceleratorType,
		AcceleratorCount: offer.AcceleratorCount,
	}}
}

// scheduling makes machines that end when Google ends them: one that came back
// with other GPUs would not be the machine that was answered. Neither a maximal
// run time nor a termination time is set, since both end a machine while
// something computes on it; the start-up script does not.
func scheduling(offer Offer) *compute.Scheduling {
	restart := false
	made := &compute.Scheduling{AutomaticRestart: &restart, OnHostMaintenance: "TERMINATE",
		ProvisioningModel: "STANDARD"}
	switch {
	case offer.Market == Spot:
		made.ProvisioningModel, made.InstanceTerminationAction = "SPOT", "DELETE"
	case offer.ReservationBound:
		made.ProvisioningModel, made.InstanceTerminationAction = "RESERVATION_BOUND", "DELETE"
	}
	return made
}

// affinity keeps machines out of reservations that they were not bought from.
func affinity(offer Offer) *compute.ReservationAffinity {
	if offer.Market != Reservation {
		return &compute.ReservationAffinity{ConsumeReservationType: "NO_RESERVATION"}
	}
	return &compute.ReservationAffinity{
		ConsumeReservationType: "SPECIFIC_RESERVATION",
		Key:                    "compute.googleapis.com/reservation-name",
		Values:                 []string{offer.Reservation},
	}
}

func (c *Cloud) disk(offer Offer) *compute.AttachedDisk {
	return &compute.AttachedDisk{
		Boot: true, AutoDelete: true,
		InitializeParams: &compute.AttachedDiskInitializeParams{
			SourceImage: c.config.Image, DiskSizeGb: c.config.DiskGiB,
			DiskType: "zones/" + offer.Zone + "/diskTypes/" + c.config.DiskType,
		},
	}
}

func (c *Cloud) network(offer Offer) *compute.NetworkInterface {
	made := &compute.NetworkInterface{
		Network:    within("global/networks/", c.config.Network),
		Subnetwork: within("regions/"+region(offer.Zone)+"/subnetworks/", c.config.Subnetwork),
	}
	if c.config.ExternalIP {
		made.AccessConfigs = []*compute.AccessConfig{{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}}
	}
	return made
}

// within completes a bare name; a path is one already.
func within(folder, name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return folder + name
}

func region(zone string) string { return zone[:strings.LastIndexByte(zone, '-')] }

func (c *Cloud) accounts() []*compute.ServiceAccount {
	if c.config.ServiceAccount == "" {
		return nil
	}
	return []*compute.ServiceAccount{{Email: c.config.ServiceAccount, Scopes: []string{compute.CloudPlatformScope}}}
}

func labels(token string, spec provisioners.Spec) map[string]string {
	made := map[string]string{}
	tagsFor(token, spec).each(func(key, value string) { made[key] = label(value) })
	return made
}

func tagsFor(token string, spec provisioners.Spec) tags {
	return tags{token: token, owner: spec.Owner, node: spec.NodeID, kind: spec.Type}
}

func (c *Cloud) metadata(token string, spec provisioners.Spec) []*compute.MetadataItems {
	var items []*compute.MetadataItems
	add := func(key, value string) {
		items = append(items, &compute.MetadataItems{Key: key, Value: &value})
	}
	tagsFor(token, spec).each(add)
	if c.config.Probe == GuestAttributes {
		add("enable-guest-attributes", "TRUE")
	}
	add("startup-script", guest.Script)
	if c.script != "" {
		add(guest.UserKey, c.script)
	}
	if !spec.ExpiresAt.IsZero() {
		add(guest.ExpiresKey, strconv.FormatInt(spec.ExpiresAt.Unix(), 10))
	}
	return items
}
