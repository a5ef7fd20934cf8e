package gpu

import "time"

// Source is one place where a pool's machines come from, with what it charges.
type Source struct {
	Provisioner string // name of a configured provisioner
	Region      string
	Type        string        // the provisioner's name for the machine type
	Price       MicroUSD      // of a machine per hour
	MinBilling  time.Duration // the shortest time that is charged
}

// Key names the source among those of a pool: what is asked of whom, and not at
// what price.
func (s Source) Key() string { return s.Provisioner + "/" + s.Region + "/" + s.Type }

// Cost is what a machine of the source costs that was billed from its birth for
// so long. The minimum is owed from the first moment.
func (s Source) Cost(billed time.Duration) MicroUSD {
	if billed < 0 {
		return 0
	}
	return s.Price.For(max(billed, s.MinBilling))
}

// Alternate is another source of a pool's machines, for when the first is dear,
// slow or out of stock, with what is believed of its boots until some were seen.
type Alternate struct {
	Source
	Boot50, Boot95 time.Duration
}

// Source returns the pool's first source.
func (p Pool) Source() Source {
	return Source{Provisioner: p.Provisioner, Region: p.Region, Type: p.Type, Price: p.Price, MinBilling: p.MinBilling}
}

// Sources returns every source of the pool, its first one first.
func (p Pool) Sources() []Source {
	sources := []Source{p.Source()}
	for _, a := range p.Alternates {
		sources = append(sources, a.Source)
	}
	return sources
}
