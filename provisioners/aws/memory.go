//go:build clouds

package aws

import (
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

// sighting is what this process has seen of a machine.
type sighting struct {
	touched time.Time
	made    time.Time // when our own launch was answered
	row     types.Instance
	claimed bool // its end was told, though its tags may not show it yet
	looked  time.Time
	report  guest.Report
	proved  bool // there was a report
}

const (
	mostSeen   = 10_000
	forgetSeen = 30 * time.Minute // not asked about for so long
)

// updateSighting changes what is known of a machine and returns it.
func (p *Provisioner) updateSighting(id string, change func(*sighting)) sighting {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if len(p.seen) >= mostSeen {
		for old, s := range p.seen {
			if now.Sub(s.touched) > forgetSeen {
				delete(p.seen, old)
			}
		}
	}
	s := p.seen[id]
	change(&s)
	s.touched = now
	if _, known := p.seen[id]; known || len(p.seen) < mostSeen {
		p.seen[id] = s
	}
	return s
}

func (p *Provisioner) sightingOf(id string) sighting { return p.updateSighting(id, func(*sighting) {}) }

// rememberLaunch keeps a machine that was just launched, or answered once more.
func (p *Provisioner) rememberLaunch(row types.Instance) {
	p.updateSighting(sdk.ToString(row.InstanceId), func(s *sighting) {
		if s.made.IsZero() {
			s.made = p.clock.Now()
		}
		s.row = row
	})
}

// recentLaunch returns a machine that this process launched so recently that EC2 may
// not show it yet.
func (p *Provisioner) recentLaunch(id string) (types.Instance, bool) {
	s := p.sightingOf(id)
	return s.row, !s.made.IsZero() && p.clock.Now().Sub(s.made) < settle
}

func (p *Provisioner) hasExpiry(row types.Instance) bool {
	return p.sightingOf(sdk.ToString(row.InstanceId)).claimed
}

func (p *Provisioner) setClaimed(row types.Instance) {
	p.updateSighting(sdk.ToString(row.InstanceId), func(s *sighting) { s.claimed = true })
}
