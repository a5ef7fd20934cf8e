//go:build clouds

package gcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

var (
	projectPattern = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
	zonePattern    = regexp.MustCompile(`^[a-z]+(-[a-z]+)+[0-9]+-[a-z]+[0-9]*[a-z]?$`)
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	pathPattern    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$`)
)

const (
	leastDiskGiB, mostDiskGiB = 10, 65_536
	mostGPUs                  = 64
	longestWait               = 2 * time.Minute // the service itself waits no longer
	longestRequest            = 10 * time.Minute
)

// mistakes collects what is wrong, each with its field.
type mistakes []error

func (m *mistakes) addIf(wrong bool, format string, args ...any) {
	if wrong {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

// Validate returns every mistake in the config, each with its field.
func (c Config) Validate() error {
	var m mistakes
	if err := provisioners.CheckName(c.Name); err != nil {
		m = append(m, err)
	}
	if _, err := c.baseURL(); err != nil {
		m = append(m, err)
	}
	if err := c.Daemon.Check(); err != nil {
		m = append(m, err)
	}
	m.addIf(!projectPattern.MatchString(c.Project), "project: %q is not the id of a project", c.Project)
	m.addIf(!pathPattern.MatchString(c.Image) || !strings.Contains(c.Image, "/images/"),
		"image: %q is not projects/<p>/global/images/<i> or projects/<p>/global/images/family/<f>", c.Image)
	m.addIf(c.DiskGiB < leastDiskGiB || c.DiskGiB > mostDiskGiB, "disk_gib: %d is not between %d and %d", c.DiskGiB,
		leastDiskGiB, mostDiskGiB)
	m.addIf(!namePattern.MatchString(c.DiskType), "disk_type: %q is not the name of a type", c.DiskType)
	m.addIf(c.Network != "" && !pathPattern.MatchString(c.Network), "network: %q is not a name or path", c.Network)
	m.addIf(c.LoginUser != "" && !access.IsName(c.LoginUser), "login_user: %q is no name of a user", c.LoginUser)
	m.addIf(c.Subnetwork != "" && !pathPattern.MatchString(c.Subnetwork), "subnetwork: %q is not a name or path",
		c.Subnetwork)
	m.addIf(c.ServiceAccount != "" && !strings.Contains(c.ServiceAccount, "@"),
		"service_account: %q is not an e-mail address", c.ServiceAccount)
	m.addIf(c.Probe != GuestAttributes && c.Probe != NoProbe, "probe: %q is not %s or %s", c.Probe, GuestAttributes,
		NoProbe)
	m.addIf(c.OperationWait < 0 || c.OperationWait > longestWait, "operation_wait: %v is not between 0 and %v",
		c.OperationWait, longestWait)
	m.addIf(c.RequestTimeout < time.Second || c.RequestTimeout > longestRequest,
		"request_timeout: %v is not between 1s and %v", c.RequestTimeout, longestRequest)
	for i, tag := range c.Tags {
		m.addIf(!namePattern.MatchString(tag), "tags[%d]: %q is not a network tag", i, tag)
	}
	m.addOffers(c.Offers)
	return errors.Join(m...)
}

func (m *mistakes) addOffers(offers []Offer) {
	m.addIf(len(offers) == 0, "offers: want at least one")
	seen := map[[2]string]bool{}
	for i, offer := range offers {
		key := [2]string{offer.Type, offer.Zone}
		m.addIf(seen[key], "offers[%d]: type %q is there twice in zone %q", i, offer.Type, offer.Zone)
		seen[key] = true
		if err := offer.validate(); err != nil {
			*m = append(*m, fmt.Errorf("offers[%d]: %w", i, err))
		}
	}
}

func (o Offer) validate() error {
	var m mistakes
	m.addIf(o.Type == "" || len(o.Type) > 128, "type: want 1 to 128 characters")
	m.addIf(!namePattern.MatchString(o.MachineType), "machine_type: %q is not the name of a machine type",
		o.MachineType)
	m.addIf(!zonePattern.MatchString(o.Zone), "zone: %q is not a zone such as us-central1-a", o.Zone)
	m.addIf(o.Model == "", "model: is empty")
	m.addIf(o.GPUs < 1 || o.GPUs > mostGPUs, "gpus: %d is not between 1 and %d", o.GPUs, mostGPUs)
	m.addIf(o.MemoryMiB < 0, "memory_mib: %d is negative", o.MemoryMiB)
	m.addIf(o.Price < 0, "price_per_hour: %d is negative", o.Price)
	m.addIf(o.MinBilling < 0, "min_billing: %v is negative", o.MinBilling)
	m.addIf(o.Boot.P50 <= 0 || o.Boot.P95 < o.Boot.P50, "boot: want 0 < p50 <= p95, have p50 %v, p95 %v", o.Boot.P50,
		o.Boot.P95)
	m.addIf(o.AcceleratorType == "" && o.AcceleratorCount != 0 || o.AcceleratorType != "" &&
		o.AcceleratorCount != int64(o.GPUs),
		"accelerator_count: %d; want the number of gpus with an accelerator_type, and 0 without", o.AcceleratorCount)
	m.addIf(o.AcceleratorType != "" && !namePattern.MatchString(o.AcceleratorType),
		"accelerator_type: %q is not the name of a type", o.AcceleratorType)
	m.addIf(o.Market != OnDemand && o.Market != Spot && o.Market != Reservation, "market: %q is not %s, %s or %s",
		o.Market, OnDemand, Spot, Reservation)
	m.addIf((o.Market == Reservation) != (o.Reservation != ""),
		"reservation: want one with the market %s, and only then", Reservation)
	m.addIf(o.Reservation != "" && !pathPattern.MatchString(o.Reservation), "reservation: %q is not a name or path",
		o.Reservation)
	m.addIf(o.ReservationBound && o.Market != Reservation, "reservation_bound: makes sense with the market %s only",
		Reservation)
	m.addIf(!o.From.IsZero() && !o.Until.IsZero() && !o.From.Before(o.Until), "until: is not after from")
	return errors.Join(m...)
}

// baseURL returns the base of every URL, which ends with a slash, or "" for
// Google's own. Credentials travel over TLS or not at all.
func (c Config) baseURL() (string, error) {
	if c.Endpoint == "" {
		return "", nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("endpoint: want a URL with a host and no user, query or fragment")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return "", fmt.Errorf("endpoint: %s is neither https nor http to this machine", u.Redacted())
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/compute/v1"
	}
	return strings.TrimSuffix(u.String(), "/") + "/", nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() && net.ParseIP(host) != nil
}

// isPlaintext reports whether calls go to this machine without TLS, and so without
// credentials.
func (c Config) isPlaintext() bool { return strings.HasPrefix(c.Endpoint, "http://") }
