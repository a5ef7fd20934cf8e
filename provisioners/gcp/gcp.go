//go:build clouds

package gcp

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"google.golang.org/api/compute/v1"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// Cloud is a project in Compute Engine as a provisioner. It is safe for
// concurrent use.
type Cloud struct {
	config Config
	clock  clock.Clock
	script string // the operator's own

	memory *memory
	probes *probes

	mu  sync.Mutex
	api *compute.Service // nil until the first call
}

var (
	_ provisioners.Provisioner = (*Cloud)(nil)
	_ provisioners.Renewer     = (*Cloud)(nil)

	_ provisioners.DaemonDownloader = (*Cloud)(nil)
)

// maxScript is what Google takes in one metadata value.
const maxScript = 256 << 10

// New returns the provisioner. It fails on a bad config, on a start-up script
// that cannot be read and on a damaged state file; whether the credentials are
// good is first asked by a call.
func New(config Config, clock clock.Clock) (*Cloud, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("configuring Compute Engine as %q: %w", config.Name, err)
	}
	c := &Cloud{config: config, clock: clock, probes: newProbes()}
	if config.StartupScriptFile != "" {
		text, err := os.ReadFile(config.StartupScriptFile)
		if err != nil {
			return nil, fmt.Errorf("configuring Compute Engine as %q: startup_script_file: %w", config.Name, err)
		}
		if len(text) > maxScript {
			return nil, fmt.Errorf("configuring Compute Engine as %q: startup_script_file: is larger than %d bytes",
				config.Name, maxScript)
		}
		c.script = string(text)
	}
	var err error
	if c.memory, err = openMemory(config.StateFile, clock); err != nil {
		return nil, fmt.Errorf("opening Compute Engine as %q: %w", config.Name, err)
	}
	return c, nil
}

// Name returns the configured name.
func (c *Cloud) Name() string { return c.config.Name }

// StartsDaemons reports whether machines start the daemon of their node when they boot.
func (c *Cloud) StartsDaemons() bool { return c.config.Daemon.Starts() }

// DownloadsDaemons reports whether they download it.
func (c *Cloud) DownloadsDaemons() bool { return c.config.Daemon == bootscript.Download }

// Offers returns the configured offers. Google does not say what it has left.
func (c *Cloud) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	var offers []provisioners.Offer
	for _, offer := range c.config.Offers {
		offers = append(offers, offer.portOffer(c.config.Probe))
	}
	return offers, nil
}

// findOffer returns what a spec asks for. Without a region the type must be in one
// zone only: a repeated call would not be sure to mean the same one.
func (c Config) findOffer(spec provisioners.Spec) (Offer, error) {
	var found []Offer
	for _, offer := range c.Offers {
		if offer.Type == spec.Type && (spec.Region == "" || offer.Zone == spec.Region) {
			found = append(found, offer)
		}
	}
	switch len(found) {
	case 0:
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in zone %q", spec.Type, spec.Region)
	case 1:
		return found[0], nil
	default:
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "type %q is in %d zones, and the spec names none",
			spec.Type, len(found))
	}
}

// configuredOffer returns the offer of a machine that exists; false when it is no longer
// configured.
func (c Config) configuredOffer(kind, zone string) (Offer, bool) {
	i := slices.IndexFunc(c.Offers, func(o Offer) bool { return o.Type == kind && o.Zone == zone })
	if i < 0 {
		return Offer{}, false
	}
	return c.Offers[i], true
}
