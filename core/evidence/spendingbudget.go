package evidence

import "time"

// spendingBudget bounds what one source can cost, in GPU-hours. It holds what the source
// may still lose: an allowance at first, more when records saved waits, less when
// they idled, never more than the allowance, and again by one allowance in each
// Refill. A record is paid for in advance, at its worst. So what the source lost
// more than it earned is never above one allowance and what was refilled, counted
// from any moment on: a record of a hundred good messages buys no bigger harm.
type spendingBudget struct {
	Balance float64   `json:"balance"`
	Held    float64   `json:"held"`  // set aside for open records, not part of Balance
	Since   time.Time `json:"since"` // refilled up to here
	Spent   float64   `json:"spent"` // idled, in all
	Earned  float64   `json:"earned"`
}

func (p *spendingBudget) refillUntil(now time.Time, c Config) {
	if p.Since.IsZero() {
		p.Balance, p.Since = c.Allowance, now
	}
	if d := now.Sub(p.Since); d > 0 {
		p.Balance += c.Allowance * float64(d) / float64(c.Refill)
		p.Since = now
	}
	p.capBalance(c)
}

// capBalance keeps what can be lost, set aside or not, within one allowance.
func (p *spendingBudget) capBalance(c Config) { p.Balance = max(0, min(p.Balance, c.Allowance-p.Held)) }

func (p *spendingBudget) reserveHours(hours float64) {
	p.Balance, p.Held = max(0, p.Balance-hours), p.Held+hours
}

// settleReservation ends a reservation with what it really cost and earned.
func (p *spendingBudget) settleReservation(reserved, spent, earned float64, c Config) {
	spent = clampFinite(spent, 0, reserved)
	earned = clampFinite(earned, 0, MaxGPUs)
	p.Held = max(0, p.Held-reserved)
	p.Balance += reserved - spent + earned
	p.Spent, p.Earned = p.Spent+spent, p.Earned+earned
	p.capBalance(c)
}

func (p spendingBudget) isSound() bool {
	return areFinite(p.Balance, p.Held, p.Spent, p.Earned) && p.Balance >= 0 && p.Held >= 0 && p.Spent >= 0 &&
		p.Earned >= 0
}
