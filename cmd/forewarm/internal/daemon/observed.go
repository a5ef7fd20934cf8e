package daemon

import (
	"fmt"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// Uses of a pool, as the file names them.
const (
	useReserved = "reserved"
	useObserved = "observed"
)

// Holder gives the work of a name in an observed pool to an organization, by its id or
// name.
type Holder struct {
	Account      string `yaml:"account"`
	User         string `yaml:"user"`
	Namespace    string `yaml:"namespace"`
	Queue        string `yaml:"queue"`
	Organization string `yaml:"organization"`
}

func (p Pool) decodeHolders() capacity.Holders {
	h := capacity.Holders{Default: p.Default}
	for _, r := range p.Holders {
		h.Rules = append(h.Rules, capacity.HolderRule{Account: r.Account, User: r.User, Namespace: r.Namespace,
			Queue: r.Queue, OrganizationID: r.Organization})
	}
	return h
}

// settleUse makes a pool that does not say how it is used what its provisioner is for,
// and refuses one that says something else.
func settleUse(c Config, def *capacity.Pool, use string, o provisioners.Offer, at string) error {
	is := useReserved
	if o.Observed {
		is = useObserved
	}
	switch use {
	case "":
		def.Observed = o.Observed
	case is:
	case useReserved, useObserved:
		return c.valueError(at+".use", fmt.Sprintf("is %s, and provisioner %q is configured with use: %s", use,
			def.Provisioner, is), "write the same in both places")
	default:
		return c.valueError(at+".use", fmt.Sprintf("is %q", use), "write reserved or observed")
	}
	return nil
}

// What holders are told of a pool's nodes, as the file names it.
const (
	accessShell   = "shell"
	accessDevices = "devices"
)

// checkAccess refuses an unknown policy of access.
func checkAccess(c Config, policy, at string) error {
	switch policy {
	case "", accessShell, accessDevices:
		return nil
	}
	return c.valueError(at+".access", fmt.Sprintf("is %q", policy), "write shell or devices")
}

// checkMinDriver refuses what is no version of a driver.
func checkMinDriver(c Config, least, at string) error {
	if least == "" || capacity.Driver(least).Valid() {
		return nil
	}
	return c.valueError(at+".min_driver", fmt.Sprintf("is %q", least),
		`write the version of a driver, as in "535.104.05"`)
}

// checkIsolation refuses what is no isolation.
func checkIsolation(c Config, least, at string) error {
	if least == "" || capacity.Isolation(least).Valid() {
		return nil
	}
	return c.valueError(at+".isolation", fmt.Sprintf("is %q", least), "write devices, user or environment")
}
