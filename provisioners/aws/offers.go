//go:build clouds

package aws

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/provisioners"
)

const (
	minBilling = time.Minute
	spotNotice = 2 * time.Minute
	// blockTail is the end of a capacity block that is billed and cannot be used:
	// EC2 begins to terminate its machines 30 minutes before the end, and says so
	// 10 minutes earlier.
	blockTail = 40 * time.Minute
	// closingLead is how long before the usable end it is announced, and nothing
	// is launched any more.
	closingLead = 15 * time.Minute
)

// Offers lists the configured offers. Whether EC2 has such machines only Create
// finds out: there is no question to ask.
func (p *Provisioner) Offers(ctx context.Context) ([]provisioners.Offer, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return nil, err
	}
	offers := make([]provisioners.Offer, len(p.config.Offers))
	for i, o := range p.config.Offers {
		offers[i] = o.portOffer(p.config.Region)
	}
	return offers, nil
}

func (o Offer) portOffer(region string) provisioners.Offer {
	offer := provisioners.Offer{
		Type: o.Type, Region: region, Model: o.Model, GPUs: o.GPUs, MemoryMiB: o.MemoryMiB,
		Price: money.MicroUSD(*o.Price), MinBilling: minBilling,
		Boot: provisioners.Boot{P50: o.Boot.P50, P95: o.Boot.P95}, From: o.From, Until: o.usableUntil(),
	}
	if o.Market == Spot {
		offer.Interruptible, offer.Notice = true, spotNotice
	}
	return offer
}

// usableUntil is zero where the supply has no end.
func (o Offer) usableUntil() time.Time {
	if o.Market != CapacityBlock || o.Until.IsZero() {
		return o.Until
	}
	return o.Until.Add(-blockTail)
}

// checkWindow refuses a launch outside of the window that the supply was bought for.
func (o Offer) checkWindow(now time.Time) error {
	if now.Before(o.From) || o.isClosing(now) {
		return &provisioners.Error{Kind: provisioners.KindCapacity, Scope: o.supplyScope(),
			Message: "outside of the window of " + o.ReservationID}
	}
	return nil
}

func (o Offer) isClosing(now time.Time) bool {
	return !o.Until.IsZero() && !now.Before(o.usableUntil().Add(-closingLead))
}

// supplyScope names the supply that an answer about capacity speaks of.
func (o Offer) supplyScope() string {
	parts := []string{o.InstanceType}
	if place := cmp.Or(o.Zone, o.Subnet); place != "" {
		parts = []string{place, o.InstanceType}
	}
	if o.Market != OnDemand {
		parts = append(parts, string(o.Market))
	}
	return strings.Join(parts, "/")
}

// findOffer finds an offer by the operator's name for it.
func (p *Provisioner) findOffer(name string) (Offer, bool) {
	i := slices.IndexFunc(p.config.Offers, func(o Offer) bool { return o.Type == name })
	if i < 0 {
		return Offer{}, false
	}
	return p.config.Offers[i], true
}
