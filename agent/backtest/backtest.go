// Package backtest compares Forewarm with simpler rules on a user's own job
// history, and says which of them to use.
//
// It works on a history alone: no server, no model, no network. Every decision
// is made from what had happened before it, which core/backtest guarantees. The
// first three tenths of the time serve only for learning. The same history
// gives the same report, whatever the order of its rows; nothing in it depends
// on when it was made.
package backtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "github.com/forewarm/forewarm/core/backtest"
)

// Config says what waiting and idling are worth, and how the history is seen.
type Config struct {
	// WaitWorth is how many idle GPU-hours one hour of one waiting job is worth.
	WaitWorth float64
	// GPUPrice is what a GPU costs in USD an hour; 0 means that it is not known.
	GPUPrice float64
	// Boot is how long a job waits when no GPU is warm, in whole seconds.
	Boot time.Duration
	// Zone is the zone of opening hours and of weekdays; nil means UTC.
	Zone *time.Location
	// Days limits the history to jobs submitted in its last days; 0 takes all.
	Days int
	// Tenant limits the history to one group or account; empty takes all.
	Tenant string
	// Now is the present, after which no row counts; zero takes all.
	Now time.Time
	// Progress is told the share of the work that is done, 0 to 1; nil is not.
	Progress func(share float64)
}

// WithDefaults fills what is zero: waiting worth 32, a boot of five minutes, UTC.
func (c Config) WithDefaults() Config {
	if c.WaitWorth == 0 {
		c.WaitWorth = 32
	}
	if c.Boot == 0 {
		c.Boot = 5 * time.Minute
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Progress == nil {
		c.Progress = func(float64) {}
	}
	return c
}

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c Config) Validate() error {
	switch {
	case !(c.WaitWorth > 0 && c.WaitWorth <= 1e6):
		return fmt.Errorf("an hour of waiting is worth %v idle GPU-hours: want above 0 and at most 1000000",
			c.WaitWorth)
	case !(c.GPUPrice >= 0 && c.GPUPrice <= 1e6):
		return fmt.Errorf("a GPU costs %v USD an hour: want at most 1000000", c.GPUPrice)
	case c.Boot < time.Second || c.Boot > 24*time.Hour || c.Boot%time.Second != 0:
		return fmt.Errorf("a boot takes %v: want whole seconds, from 1s to 24h", c.Boot)
	case c.Days < 0 || c.Days > 36500:
		return fmt.Errorf("the last %d days: want 1 to 36500", c.Days)
	default:
		return nil
	}
}

func (c Config) bootSeconds() int64 { return int64(c.Boot / time.Second) }

// ErrNoJobs says that there is nothing to replay.
var ErrNoJobs = errors.New("the history holds no GPU job whose run time is known")

// NoTenantError says that a history has no job of the tenant that was asked for.
type NoTenantError struct {
	Tenant string
	Known  []string // the tenants that it has jobs of, sorted; an empty name is of jobs that tell none
}

// Error names the tenants that there are.
func (e *NoTenantError) Error() string {
	const most = 8
	names := slices.DeleteFunc(slices.Clone(e.Known), func(name string) bool { return name == "" })
	switch known := strings.Join(names[:min(most, len(names))], ", "); {
	case len(names) == 0:
		return fmt.Sprintf("the history has no job of %q: its rows name no group or account", e.Tenant)
	case len(names) > most:
		return fmt.Sprintf("the history has no job of %q, but of %s and %d more", e.Tenant, known, len(names)-most)
	default:
		return fmt.Sprintf("the history has no job of %q, but of %s", e.Tenant, known)
	}
}

// Run replays the history under every policy. It returns the context's error as
// soon as that is done.
func Run(ctx context.Context, h Input, c Config) (Report, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return Report{}, fmt.Errorf("checking what waiting and idling are worth: %w", err)
	}
	past, err := prepareInput(h, c)
	if err != nil {
		return Report{}, err
	}
	e := newExperiment(past, c)
	if err := e.runTrials(ctx); err != nil {
		return Report{}, err
	}
	foresight, err := core.Oracle(past.trace, c.bootSeconds())
	if err != nil {
		return Report{}, fmt.Errorf("computing perfect foresight: %w", err)
	}
	return e.newReport(foresight), nil
}
