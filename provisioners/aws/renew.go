//go:build clouds

package aws

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/aws/guest"
)

// Renew moves the end that the machine reads in its tag, at most a minute later.
func (p *Provisioner) Renew(ctx context.Context, id string, until time.Time) error {
	ctx, done, err := p.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	row, err := p.describeInstance(ctx, id)
	if err != nil {
		return err
	}
	if !isLive(row) {
		return provisioners.Errorf(provisioners.KindNotFound, "%s is over", id)
	}
	if !isLater(until, tagOf(row, guest.ExpiryTag)) {
		return nil
	}
	if err := p.tagExpiry(ctx, id, guest.Expiry(until)); err != nil {
		return writeError("renewing "+id, err)
	}
	p.setClaimed(row)
	return nil
}

// isLater reports whether an end is later than the one in the tag. A tag that
// nobody can read, the machine cannot read either.
func isLater(until time.Time, tag string) bool {
	if until.IsZero() || tag == guest.Never {
		return false
	}
	current, err := time.Parse(time.RFC3339, tag)
	return err != nil || until.Truncate(time.Second).After(current)
}
