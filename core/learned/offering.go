package learned

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
)

// Offering is one place where a node could be had: a pool, and with it a machine
// type in a region of a provider.
type Offering struct {
	ID     string
	Price  money.MicroUSD // of the node per hour
	Boot   BootTimes
	Supply Supply
}

// Choice is an offering with its rank in a failover order.
type Choice struct {
	ID     string
	OnTime float64 // the chance that a node asked for as soon as may be is ready by the deadline
	Cost   float64 // dollars per hour over OnTime; +Inf where there is no chance
}

// FailoverOrder orders the offerings for a node that is needed at deadline, the
// best first: by the price of an hour divided by the chance to have it on time,
// which is the odds of the provider's supply times the chance that a boot fits
// between now, or the end of a block, and the deadline. Cheaper, likelier and
// faster offerings never come later for it. What has no chance comes last, in
// the order of price; ties go by id.
func FailoverOrder(offers []Offering, deadline, now time.Time) []Choice {
	type ranked struct {
		Choice
		price money.MicroUSD
	}
	order := make([]ranked, len(offers))
	for i, o := range offers {
		ask := calendar.Later(now, o.Supply.BlockedUntil)
		c := Choice{ID: o.ID, OnTime: o.Supply.Odds(ask) * o.Boot.Within(deadline.Sub(ask))}
		c.Cost = math.Inf(1)
		if c.OnTime > 0 {
			c.Cost = float64(o.Price) / float64(money.USD) / c.OnTime
		}
		order[i] = ranked{c, o.Price}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		// At the same cost, which is nothing where nothing has a price, the likelier.
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.OnTime, a.OnTime), cmp.Compare(a.price, b.price),
			cmp.Compare(a.ID, b.ID))
	})
	choices := make([]Choice, len(order))
	for i, r := range order {
		choices[i] = r.Choice
	}
	return choices
}
