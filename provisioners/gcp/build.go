//go:build clouds

package gcp

import (
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
	"github.com/forewarm/forewarm/provisioners/gcp/guest"
)

// newInstance is the instance that is asked for.
func (c *Cloud) newInstance(o order) *compute.Instance {
	offer := o.offer
	return &compute.Instance{
		Name:                o.instanceName(),
		Description:         "A node of Forewarm's; see its labels.",
		MachineType:         "zones/" + offer.Zone + "/machineTypes/" + offer.MachineType,
		GuestAccelerators:   acceleratorConfigs(offer),
		Scheduling:          schedulingOf(offer),
		ReservationAffinity: reservationAffinity(offer),
		Disks:               []*compute.AttachedDisk{c.config.bootDisk(offer)},
		NetworkInterfaces:   []*compute.NetworkInterface{c.config.networkInterface(offer)},
		ServiceAccounts:     c.config.serviceAccounts(),
		Tags:                &compute.Tags{Items: c.config.Tags},
		Labels:              instanceLabels(o.token, o.spec),
		Metadata:            &compute.Metadata{Items: c.instanceMetadata(o)},
	}
}

func acceleratorConfigs(offer Offer) []*compute.AcceleratorConfig {
	if offer.AcceleratorType == "" {
		return nil
	}
	return []*compute.AcceleratorConfig{{
		AcceleratorType:  "zones/" + offer.Zone + "/acceleratorTypes/" + offer.AcceleratorType,
		AcceleratorCount: offer.AcceleratorCount,
	}}
}

// schedulingOf makes machines that end when Google ends them: one that came back
// with other GPUs would not be the machine that was answered. Neither a maximal
// run time nor a termination time is set, since both end a machine while
// something computes on it; the start-up script does not.
func schedulingOf(offer Offer) *compute.Scheduling {
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

// reservationAffinity keeps machines out of reservations that they were not bought from.
func reservationAffinity(offer Offer) *compute.ReservationAffinity {
	if offer.Market != Reservation {
		return &compute.ReservationAffinity{ConsumeReservationType: "NO_RESERVATION"}
	}
	return &compute.ReservationAffinity{
		ConsumeReservationType: "SPECIFIC_RESERVATION",
		Key:                    "compute.googleapis.com/reservation-name",
		Values:                 []string{offer.Reservation},
	}
}

func (c Config) bootDisk(offer Offer) *compute.AttachedDisk {
	return &compute.AttachedDisk{
		Boot: true, AutoDelete: true,
		InitializeParams: &compute.AttachedDiskInitializeParams{
			SourceImage: c.Image, DiskSizeGb: c.DiskGiB,
			DiskType: "zones/" + offer.Zone + "/diskTypes/" + c.DiskType,
		},
	}
}

func (c Config) networkInterface(offer Offer) *compute.NetworkInterface {
	made := &compute.NetworkInterface{
		Network:    completePath("global/networks/", c.Network),
		Subnetwork: completePath("regions/"+regionOf(offer.Zone)+"/subnetworks/", c.Subnetwork),
	}
	if c.ExternalIP {
		made.AccessConfigs = []*compute.AccessConfig{{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}}
	}
	return made
}

// completePath completes a bare name; a path is one already.
func completePath(folder, name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return folder + name
}

func regionOf(zone string) string { return zone[:strings.LastIndexByte(zone, '-')] }

func (c Config) serviceAccounts() []*compute.ServiceAccount {
	if c.ServiceAccount == "" {
		return nil
	}
	return []*compute.ServiceAccount{{Email: c.ServiceAccount, Scopes: []string{compute.CloudPlatformScope}}}
}

func instanceLabels(token string, spec provisioners.Spec) map[string]string {
	made := map[string]string{}
	tagsFor(token, spec).forEach(func(key, value string) { made[key] = labelValue(value) })
	return made
}

func tagsFor(token string, spec provisioners.Spec) tags {
	return tags{token: token, owner: spec.Owner, node: spec.NodeID, kind: spec.Type}
}

// renderDaemon is the script that starts the daemon of a machine's node.
func (c Config) renderDaemon(spec provisioners.Spec) (string, error) {
	if !c.Daemon.Starts() || spec.Daemon.URL == "" {
		return "", nil
	}
	script, err := bootscript.Render(c.Daemon, spec.NodeID, spec.Daemon)
	if err != nil {
		return "", provisioners.Errorf(provisioners.KindBadSpec, "%v", err)
	}
	return script, nil
}

func (c *Cloud) instanceMetadata(o order) []*compute.MetadataItems {
	var items []*compute.MetadataItems
	add := func(key, value string) {
		items = append(items, &compute.MetadataItems{Key: key, Value: &value})
	}
	tagsFor(o.token, o.spec).forEach(add)
	if c.config.Probe == GuestAttributes {
		add("enable-guest-attributes", "TRUE")
	}
	add("startup-script", guest.Script)
	if c.script != "" {
		add(guest.UserKey, c.script)
	}
	if o.daemon != "" {
		add(guest.DaemonKey, o.daemon)
	}
	if !o.spec.ExpiresAt.IsZero() {
		add(guest.ExpiresKey, strconv.FormatInt(o.spec.ExpiresAt.Unix(), 10))
	}
	return items
}
