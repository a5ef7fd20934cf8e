package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// Caps bounds what may be spent in one UTC day. A cap of zero allows none.
type Caps struct {
	Calls  int64          `json:"calls"`
	Tokens int64          `json:"tokens"` // prompt and answer together
	Cost   money.MicroUSD `json:"micro_usd"`
}

// Price is what a million tokens cost; zero for a model that costs nothing.
type Price struct {
	Prompt     money.MicroUSD
	Completion money.MicroUSD
}

// BudgetConfig configures a Budget.
type BudgetConfig struct {
	Caps     Caps
	Price    Price
	Failures int                     // the breaker opens after this many failures in a row; default 3
	CoolDown time.Duration           // and stays open this long; default 10 min
	Save     func(BudgetState) error // keeps the state before each call; nil keeps it in memory only
}

// WithDefaults returns c with its zero fields filled in, the caps left alone.
func (c BudgetConfig) WithDefaults() BudgetConfig {
	if c.Failures == 0 {
		c.Failures = 3
	}
	if c.CoolDown == 0 {
		c.CoolDown = 10 * time.Minute
	}
	return c
}

// maxPrice keeps the arithmetic of costs far from overflow: $10,000 per million
// tokens.
const maxPrice = 10_000 * money.USD

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c BudgetConfig) Validate() error {
	switch {
	case c.Caps.Calls < 0 || c.Caps.Tokens < 0 || c.Caps.Cost < 0:
		return errors.New("caps: must not be negative")
	case c.Price.Prompt < 0 || c.Price.Completion < 0 || c.Price.Prompt > maxPrice || c.Price.Completion > maxPrice:
		return errors.New("price: must lie between 0 and 10000 USD per million tokens")
	case c.Failures < 1 || c.CoolDown < 0:
		return errors.New("breaker: failures must be positive and cool_down not negative")
	default:
		return nil
	}
}

// BudgetState is what a Budget must not forget at a restart. Reserved amounts
// of calls whose end was never seen stay counted as spent.
type BudgetState struct {
	Day      string    `json:"day"` // UTC date
	Spent    Caps      `json:"spent"`
	Failures int       `json:"failures"` // in a row
	OpenTill time.Time `json:"open_till"`
}

// Budget asks a Model within caps. What a call can cost at most is reserved
// before the call and settled after it; whatever is in doubt counts as spent.
// It is safe for concurrent use.
type Budget struct {
	cfg   BudgetConfig
	clock clock.Clock

	mu    sync.Mutex
	state BudgetState
}

// NewBudget returns a Budget that goes on from state; the zero state is a first
// start.
func NewBudget(c BudgetConfig, state BudgetState, clk clock.Clock) (*Budget, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the language model budget: %w", err)
	}
	if state.Spent.Calls < 0 || state.Spent.Tokens < 0 || state.Spent.Cost < 0 {
		return nil, errors.New("checking the language model budget: the stored state is negative")
	}
	return &Budget{cfg: c, clock: clk, state: state}, nil
}

// State returns a copy of the state.
func (b *Budget) State() BudgetState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Ask reserves the most that r can cost, asks m once, and settles. An answer
// that accept refuses counts as a failure for the breaker and gives an *Error of
// KindInvalid that wraps accept's error. Without room in the caps, with the
// breaker open, or when the state cannot be saved, m is not asked.
func (b *Budget) Ask(ctx context.Context, m Model, r Request, accept func(Reply) error) (Reply, error) {
	most := b.largestCost(r)
	day, err := b.reserveToday(most)
	if err != nil {
		return Reply{}, err
	}
	reply, err := m.Ask(ctx, r)
	if err == nil {
		if refused := accept(reply); refused != nil {
			err = &Error{Kind: KindInvalid, Err: refused}
		}
	}
	if saved := b.settleReservation(day, most, b.actualCost(reply, most, err), err == nil); saved != nil {
		return Reply{}, saved
	}
	return reply, err
}

// largestCost is the upper bound of what r costs: a token is at least one byte, and a
// server adds a few of its own around each message.
func (b *Budget) largestCost(r Request) Caps {
	const frame = 64
	prompt := int64(len(r.System) + len(r.User) + len(r.Schema) + len(r.SchemaName) + frame)
	return b.priceTokens(prompt, int64(max(r.MaxTokens, 0)))
}

// actualCost is what a call turned out to cost. A server that sent nothing useful
// about it is taken to have used all that was reserved, except where it refused
// the request outright.
func (b *Budget) actualCost(reply Reply, most Caps, err error) Caps {
	if kind := KindOf(err); err != nil && (kind == KindThrottled || kind == KindDenied) {
		return Caps{Calls: 1}
	}
	if reply.PromptTokens <= 0 || reply.CompletionTokens < 0 {
		return most
	}
	return b.priceTokens(int64(reply.PromptTokens), int64(reply.CompletionTokens))
}

// maxTokens bounds what a server may claim to have used in one call.
const maxTokens = 100_000_000

func (b *Budget) priceTokens(prompt, completion int64) Caps {
	prompt, completion = min(prompt, maxTokens), min(completion, maxTokens)
	micro := float64(prompt)*float64(b.cfg.Price.Prompt) + float64(completion)*float64(b.cfg.Price.Completion)
	return Caps{Calls: 1, Tokens: prompt + completion, Cost: money.MicroUSD(math.Ceil(micro / 1e6))}
}

// reserveToday books most on today, or says why not. It returns the day booked on.
func (b *Budget) reserveToday(most Caps) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	if wait := b.state.OpenTill.Sub(now); wait > 0 {
		return "", &Error{Kind: KindBreaker, RetryAfter: wait}
	}
	next := b.state
	// A clock that went back must not open a fresh budget, so the day only grows.
	if today := now.UTC().Format(time.DateOnly); today > next.Day {
		next.Day, next.Spent = today, Caps{}
	}
	next.Spent = next.Spent.addCaps(most)
	if !next.Spent.within(b.cfg.Caps) {
		return "", &Error{Kind: KindBudget, RetryAfter: untilTomorrow(now)}
	}
	return next.Day, b.saveState(next)
}

// settleReservation replaces what was reserved by what was used and moves the breaker.
func (b *Budget) settleReservation(day string, reserved, used Caps, ok bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.state
	if next.Day == day {
		next.Spent = next.Spent.subtractCaps(reserved).addCaps(used)
	}
	next.Failures++
	if ok {
		next.Failures = 0
	}
	if next.Failures >= b.cfg.Failures {
		// The count stays, so the first failure after the cool-down opens it again.
		next.OpenTill = b.clock.Now().Add(b.cfg.CoolDown)
	}
	return b.saveState(next)
}

// saveState stores next and makes it the state. If it cannot be stored nothing
// changes, and the caller must not go on.
func (b *Budget) saveState(next BudgetState) error {
	if b.cfg.Save != nil {
		if err := b.cfg.Save(next); err != nil {
			return &Error{Kind: KindBudget, Err: fmt.Errorf("saving the budget: %w", err)}
		}
	}
	b.state = next
	return nil
}

func untilTomorrow(now time.Time) time.Duration {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

func (c Caps) addCaps(d Caps) Caps {
	return Caps{Calls: c.Calls + d.Calls, Tokens: c.Tokens + d.Tokens, Cost: c.Cost + d.Cost}
}

func (c Caps) subtractCaps(d Caps) Caps {
	return Caps{Calls: c.Calls - d.Calls, Tokens: c.Tokens - d.Tokens, Cost: c.Cost - d.Cost}
}

func (c Caps) within(limit Caps) bool {
	return c.Calls <= limit.Calls && c.Tokens <= limit.Tokens && c.Cost <= limit.Cost
}
