package main

import "github.com/forewarm/forewarm/core/backtest"

const (
	holdBefore, holdAfter = 7 * 60, 6 * 60 // seconds around the start that is claimed
	// What a GPU costs that is held for a claim, in hours: if nobody comes, and if
	// somebody does.
	costOfWrong, costOfRight = 0.27, 0.08
)

// trust is the running record of a source: which share of its claims was met,
// with one met and one missed before the first.
type trust struct{ met, claims float64 }

func (t *trust) earnedShare() float64 { return (1 + t.met) / (2 + t.claims) }

// trusting is the reference with a source of messages: around the start that is
// claimed it holds the GPUs that are claimed and have not arrived, if what they
// are expected to save is worth what they are expected to cost.
type trusting struct {
	*reference
	source   *trust
	price    float64 // of an hour of one waiting job, in GPU-hours
	messages []Message
	open     []*claim
}

// claim is a message that was received and may still come true.
type claim struct {
	Message
	arrived int
	decided bool
	held    bool
}

// Submit tells of a job.
func (t *trusting) Submit(now int64, j backtest.Job) {
	t.receiveUntil(now)
	for _, c := range t.open {
		if c.hasBegun(now) && !c.isOver(now) {
			c.arrived += j.GPUs
		}
	}
	t.reference.Submit(now, j)
}

func (c *claim) hasBegun(now int64) bool { return now >= c.Start-holdBefore }
func (c *claim) isOver(now int64) bool   { return now > c.Start+holdAfter }

// receiveUntil reads what was sent until now.
func (t *trusting) receiveUntil(now int64) {
	for len(t.messages) > 0 && t.messages[0].Sent <= now {
		t.open = append(t.open, &claim{Message: t.messages[0]})
		t.messages = t.messages[1:]
	}
}

// Target returns what the reference wants, or what claims ask for on top of the
// demand.
func (t *trusting) Target(now int64) int {
	t.receiveUntil(now)
	target := t.reference.Target(now)
	open := t.open[:0]
	for _, c := range t.open {
		if c.isOver(now) {
			t.source.countClaim(c)
			continue
		}
		open = append(open, c)
		if c.hasBegun(now) {
			target = max(target, t.past.demand+t.gpusToHold(c))
		}
	}
	t.open = open
	return target
}

// gpusToHold returns how many GPUs to hold for a claim.
func (t *trusting) gpusToHold(c *claim) int {
	if !c.decided {
		c.decided = true
		c.held = t.isWorthHolding(c)
	}
	if !c.held {
		return 0
	}
	return max(0, c.Mid-c.arrived)
}

// isWorthHolding reports whether a claim is worth what it costs at the price of waiting.
func (t *trusting) isWorthHolding(c *claim) bool {
	p, gpus := t.source.earnedShare(), float64(c.Mid)
	jobs := 1.0
	if t.past.size > 0 {
		jobs = max(1, gpus/t.past.size)
	}
	boot := float64(t.past.window-tick) / 3600
	return p*jobs*t.price*boot >= gpus*((1-p)*costOfWrong+p*costOfRight)
}

// countClaim counts a claim: how much of what was claimed arrived.
func (t *trust) countClaim(c *claim) {
	t.claims++
	t.met += min(1, float64(c.arrived)/float64(c.Mid))
}
