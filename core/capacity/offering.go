package capacity

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Offering is one place where a pool's machines come from, with what it charges.
type Offering struct {
	Provisioner string // name of a configured provisioner
	Region      string
	Type        string         // the provisioner's name for the machine type
	Price       money.MicroUSD // of a machine per hour
	MinBilling  time.Duration  // the shortest time that is charged
}

// Key names the source among those of a pool: what is asked of whom, and not at
// what price.
func (s Offering) Key() string { return s.Provisioner + "/" + s.Region + "/" + s.Type }

// Cost is what a machine of the source costs that was billed from its birth for
// so long. The minimum is owed from the first moment.
func (s Offering) Cost(billed time.Duration) money.MicroUSD {
	if billed < 0 {
		return 0
	}
	return s.Price.For(max(billed, s.MinBilling))
}

// Alternate is another source of a pool's machines, for when the first is dear,
// slow or out of stock, with what is believed of its boots until some were seen.
type Alternate struct {
	Offering
	Boot50, Boot95 time.Duration
}

// Offering returns the pool's first source.
func (p Pool) Offering() Offering {
	return Offering{Provisioner: p.Provisioner, Region: p.Region, Type: p.Type, Price: p.Price,
		MinBilling: p.MinBilling}
}

// Offerings returns every source of the pool, its first one first.
func (p Pool) Offerings() []Offering {
	sources := []Offering{p.Offering()}
	for _, a := range p.Alternates {
		sources = append(sources, a.Offering)
	}
	return sources
}
