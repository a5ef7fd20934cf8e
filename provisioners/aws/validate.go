//go:build clouds

package aws

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

var (
	regionPattern   = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-\d+$`)
	instancePattern = regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9-]+$`)
	typePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,126}$`)
)

const maxRootVolume = 65_536 // GiB, the largest that EBS makes

// Validate returns every mistake in the config, each with its field. What a
// price file would add to an offer may be missing.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name), c.checkEndpoint(), c.Daemon.Check()}
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	wrong(!regionPattern.MatchString(c.Region), "region: %q is no region, such as eu-central-1", c.Region)
	wrong(c.Address != Private && c.Address != Public, "address: %q is neither private nor public", c.Address)
	wrong(c.LoginUser != "" && !access.IsName(c.LoginUser), "login_user: %q is no name of a user", c.LoginUser)
	wrong(c.Probe != ProbeConsole && c.Probe != ProbeNone, "probe: %q is neither console nor none", c.Probe)
	wrong(c.RootVolumeGiB < 0 || c.RootVolumeGiB > maxRootVolume, "root_volume_gib: %d is not between 0 and %d",
		c.RootVolumeGiB, maxRootVolume)
	wrong(c.UnclaimedAfter < 10*time.Minute,
		"unclaimed_after: %v is shorter than 10m, the time to create a machine and set its end", c.UnclaimedAfter)
	wrong(c.CallTimeout < time.Second, "call_timeout: %v is shorter than 1s", c.CallTimeout)
	wrong(c.RetryWait < 0 || c.RetryWait > time.Minute, "retry_wait: %v is not between 0 and 1m", c.RetryWait)
	wrong(len(c.Offers) == 0, "offers: want at least one")
	for _, group := range c.SecurityGroups {
		wrong(len(group) < 4 || group[:3] != "sg-", "security_groups: %q is no id of a group (sg-…)", group)
	}
	var seen []string
	for i, offer := range c.Offers {
		wrong(slices.Contains(seen, offer.Type), "offers[%d]: type %q is there twice", i, offer.Type)
		seen = append(seen, offer.Type)
		for _, mistake := range offer.validateFields() {
			mistakes = append(mistakes, fmt.Errorf("offers[%d]: %w", i, mistake))
		}
	}
	return errors.Join(mistakes...)
}

func (c Config) checkEndpoint() error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "":
		return errors.New("endpoint: is no URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("endpoint: want a URL without user, query and fragment")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("endpoint: %s would carry requests unencrypted; want https, or http to this machine", u.Host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o Offer) validateFields() []error {
	var all []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	reserved := o.Market == CapacityReservation || o.Market == CapacityBlock
	wrong(!typePattern.MatchString(o.Type), "type: %q is no name", o.Type)
	wrong(!instancePattern.MatchString(o.InstanceType), "instance_type: %q is none, such as p5.48xlarge",
		o.InstanceType)
	wrong(o.Market != OnDemand && o.Market != Spot && !reserved,
		"market: %q is none of %s, %s, %s, %s", o.Market, OnDemand, Spot, CapacityReservation, CapacityBlock)
	wrong(reserved && o.ReservationID == "", "reservation_id: is empty, and market %s needs it", o.Market)
	wrong(!reserved && o.ReservationID != "", "reservation_id: market %s has none", o.Market)
	wrong(o.Market == CapacityBlock && (o.From.IsZero() || o.Until.IsZero()), "from, until: a capacity block has both")
	wrong(!o.Until.IsZero() && o.isClosing(o.From), "until: nothing can be used between %v and %v", o.From, o.Until)
	wrong(o.MaxSpotPrice != nil && o.Market != Spot, "max_spot_price: market %s has none", o.Market)
	wrong(o.MaxSpotPrice != nil && *o.MaxSpotPrice <= 0, "max_spot_price: is not positive")
	wrong(o.GPUs < 0 || o.GPUs > 64, "gpus: %d is not between 1 and 64", o.GPUs)
	wrong(o.MemoryMiB < 0, "memory_mib: %d is negative", o.MemoryMiB)
	wrong(o.ImageID == "", "image_id: is empty here and in the provisioner's config")
	wrong(o.Boot.P50 <= 0 || o.Boot.P95 < o.Boot.P50, "boot: want 0 < p50 <= p95, have %v and %v", o.Boot.P50,
		o.Boot.P95)
	return all
}
