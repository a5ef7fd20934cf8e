package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
)

// KeepFacts is everything that decides whether an idle node is worth keeping.
type KeepFacts struct {
	Price    money.MicroUSD `json:"price"`               // of the node per hour
	Wait     money.MicroUSD `json:"wait_worth"`          // what an hour of somebody's waiting is worth
	Boot     time.Duration  `json:"boot_ns"`             // how long a new node takes, which somebody waits for
	Idle     time.Duration  `json:"idle_ns"`             // nobody has used it for so long
	Latest   time.Duration  `json:"latest_ns"`           // idle for so long, it goes: the pool's idle_release
	Prepaid  time.Duration  `json:"prepaid_ns"`          // so much more is paid for already
	Booked   time.Duration  `json:"booked_ns,omitempty"` // until the next booking that it could serve; 0 is none
	Expected float64        `json:"expected"`            // nodes taken without a reservation in the time left until Latest
	Ahead    int            `json:"ahead"`               // idle nodes that would be taken before it
	Watched  float64        `json:"watched_hours"`       // hours of demand that Expected was learned from
	Patience float64        `json:"patience"`            // share of the break-even that an unlikely node idles, 0 to 1
	Evidence float64        `json:"evidence_hours"`      // hours that must have been watched for it to count
}

// Verdict says whether an idle node is kept, with the numbers behind it.
type Verdict struct {
	Keep      bool           `json:"keep"`
	Reason    string         `json:"reason"`       // a code
	Until     time.Duration  `json:"until_ns"`     // of idling, when it goes if nothing changes
	Use       float64        `json:"use"`          // chance that somebody takes it before then
	Holding   money.MicroUSD `json:"holding"`      // expected cost of keeping it
	Releasing money.MicroUSD `json:"releasing"`    // expected cost of making a new one instead
	BreakEven time.Duration  `json:"breakeven_ns"` // idling that costs as much as one new node
}

// Codes of verdicts.
const (
	ReasonWorthKeeping = "worth_keeping"
	ReasonTooEarly     = "break_even_not_reached"
	ReasonNoEvidence   = "too_little_known"
	ReasonUnlikely     = "next_use_unlikely"
)

// Keep decides about one idle node. Latest is the hard bound: no expectation
// keeps a node longer, and without a price or enough evidence it alone decides.
//
// Within it, the node is a pair of rented skis: holding costs a little all the
// time, a new node costs its boot and somebody's waiting at once. Where holding
// until Latest or the next booking is expected to cost more than a new node, the
// node goes once it has idled for Patience of the break-even time: that costs at
// most 1+Patience times what hindsight would have paid if the expectation was
// right, and 1+1/Patience times if it was wrong (Purohit, Svitkina and Kumar,
// "Improving Online Algorithms via ML Predictions", NeurIPS 2018, algorithm 2).
//
// A higher price never turns a release into a keep, and a higher expectation
// never a keep into a release.
func Keep(f KeepFacts) Verdict {
	v, worth := f.compareCosts()
	patience := max(scaleDuration(v.BreakEven, f.Patience), f.Idle+f.Prepaid)
	switch {
	case f.Idle >= f.Latest:
		v.Reason, v.Until = ReasonIdle, f.Idle
	case f.Price <= 0 || f.Watched < f.Evidence:
		v.Keep, v.Reason = true, ReasonNoEvidence
	case worth:
		v.Keep, v.Reason = true, ReasonWorthKeeping
	case f.Idle < patience:
		v.Keep, v.Reason, v.Until = true, ReasonTooEarly, min(f.Latest, patience)
	default:
		v.Reason, v.Until = ReasonUnlikely, f.Idle
	}
	return v
}

// compareCosts fills in the numbers, and reports whether holding is expected to cost no
// more than releasing.
func (f KeepFacts) compareCosts() (Verdict, bool) {
	v := Verdict{Until: f.Latest, BreakEven: f.Latest}
	if f.Idle >= f.Latest {
		return v, false
	}
	rest := f.Latest - f.Idle
	rate, until := f.Expected/rest.Hours(), rest
	booked := f.Booked > 0 && f.Booked <= rest
	if booked {
		until = f.Booked
	}
	price, boot := float64(f.Price), f.Boot.Hours()
	next := erlang{rate: rate, stage: f.Ahead + 1}
	v.Use = next.cdf(until.Hours())
	trade := forecast.Trade{
		Price: price, Wait: float64(f.Wait), Boot: boot, Used: v.Use,
		Idle: next.meanUntil(until.Hours()) - next.meanUntil(min(until, f.Prepaid).Hours()),
	}
	holding, releasing := trade.Holding(), trade.Saving()
	if booked { // the node of a booking is made in time, so that nobody waits
		releasing += (1 - v.Use) * boot * price
	}
	v.Holding, v.Releasing = money.MicroUSD(math.Round(holding)), money.MicroUSD(math.Round(releasing))
	if f.Price > 0 {
		v.BreakEven = scaleDuration(f.Boot, 1+float64(f.Wait)/price)
	}
	return v, holding <= releasing
}

// String says in one sentence why, for people.
func (v Verdict) String() string {
	return fmt.Sprintf("%s: used with probability %.2f until it has idled for %s, holding costs %s, a new node %s, "+
		"break-even after %s",
		v.Reason, v.Use, v.Until.Round(time.Second), v.Holding, v.Releasing, v.BreakEven.Round(time.Second))
}

func scaleDuration(d time.Duration, by float64) time.Duration {
	return time.Duration(math.Min(math.Round(float64(d)*by), math.MaxInt64/2))
}

// erlang is the time until so many Poisson arrivals have come: the Erlang
// distribution. Times are in hours.
type erlang struct {
	rate  float64
	stage int
}

// cdf is the chance that it is at most h.
func (u erlang) cdf(h float64) float64 {
	at, _ := u.stageSums(h)
	return at
}

// meanUntil is the mean of the shorter of it and h.
func (u erlang) meanUntil(h float64) float64 {
	if u.rate <= 0 || h <= 0 {
		return max(0, h)
	}
	_, sum := u.stageSums(h)
	return min(h, sum/u.rate)
}

// stageSums returns P(N >= stage), and its sum over all stages up to it, for the N
// arrivals in h.
func (u erlang) stageSums(h float64) (at, sum float64) {
	m := u.rate * h
	if m <= 0 {
		return 0, 0
	}
	term := math.Exp(-m) // P(N = i-1)
	at = -math.Expm1(-m) // P(N >= i)
	for i := 1; ; i++ {
		sum += at
		if i == u.stage {
			return at, sum
		}
		if term *= m / float64(i); at <= term && float64(i) > m {
			return 0, sum
		}
		at -= term
	}
}
