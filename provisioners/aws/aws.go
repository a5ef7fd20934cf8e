//go:build clouds

package aws

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/bootscript"
)

// Provisioner makes EC2 instances in one region. It is safe for concurrent use.
// What it remembers saves requests, and may be lost at any moment.
type Provisioner struct {
	config      Config
	clock       clock.Clock
	client      *ec2.Client
	credentials sdk.CredentialsProvider
	extra       []byte // the operator's own user data

	mu     sync.Mutex
	seen   map[string]sighting // by instance id
	images map[string]image    // by image id
	events events
}

var (
	_ provisioners.Provisioner = (*Provisioner)(nil)
	_ provisioners.Renewer     = (*Provisioner)(nil)

	_ provisioners.DaemonDownloader = (*Provisioner)(nil)
)

// New reads the files that the config names. It asks nothing of EC2.
func New(c Config, clock clock.Clock) (*Provisioner, error) {
	c = c.WithDefaults()
	completed, incomplete := c.completeOffers()
	if err := errors.Join(c.Validate(), incomplete); err != nil {
		return nil, fmt.Errorf("configuring aws provisioner %q: %w", c.Name, err)
	}
	extra, err := completed.readExtra()
	if err != nil {
		return nil, fmt.Errorf("configuring aws provisioner %q: user_data_file: %w", c.Name, err)
	}
	client, credentials, err := newClient(completed)
	if err != nil {
		return nil, fmt.Errorf("configuring aws provisioner %q: %w", c.Name, err)
	}
	return &Provisioner{
		config: completed, clock: clock, client: client, credentials: credentials, extra: extra,
		seen: map[string]sighting{}, images: map[string]image{},
	}, nil
}

// Name returns the configured name.
func (p *Provisioner) Name() string { return p.config.Name }

// StartsDaemons reports whether machines start the daemon of their node when they boot.
func (p *Provisioner) StartsDaemons() bool { return p.config.Daemon.Starts() }

// DownloadsDaemons reports whether they download it.
func (p *Provisioner) DownloadsDaemons() bool { return p.config.Daemon == bootscript.Download }

// Delete terminates the machine, whatever its state.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	ctx, done, err := p.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	if id == "" {
		return nil // EC2 has no such id
	}
	_, err = p.client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	if err != nil && !isUnknownInstance(err) {
		return writeError("terminating "+id, err)
	}
	return nil
}

// settle is how long EC2 may deny what it has just answered.
const settle = 5 * time.Minute
