package asynqueue

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forewarm/forewarm/internal/obs"
)

// Config says which Redis to use and how.
type Config struct {
	// URL names the server, for example redis://user:password@host:6379/0, or
	// rediss:// for TLS. It may hold credentials, hence the type. Required.
	URL obs.Secret
	// Namespace is asynq's queue name: installations that share a Redis need
	// different ones. Lower-case letters, digits, "-" and "_". Default "forewarm".
	Namespace string
	// Timeout is how long a handler may take before asynq stops extending the
	// message's lease, in whole seconds. Default 10 minutes. The ledger's leases
	// end much earlier; this is only the outermost fence.
	Timeout time.Duration
	// PollInterval is how often an idle runner looks for work. Default 100 ms,
	// which measured a mean pick-up of 60 ms.
	PollInterval time.Duration
	// Logger gets asynq's log lines and our own. Nil means slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns c with every unset field but URL filled in.
func (c Config) WithDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = "forewarm"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.PollInterval == 0 {
		c.PollInterval = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

var namespaces = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// Validate names everything that is wrong with c, never with a part of the URL.
func (c Config) Validate() error {
	var errs []error
	if _, err := c.redisOptions(); err != nil {
		errs = append(errs, err)
	}
	if !namespaces.MatchString(c.Namespace) {
		errs = append(errs, fmt.Errorf("namespace %q: want 1 to 64 of a-z, 0-9, - and _", c.Namespace))
	}
	if c.Timeout < time.Second || c.Timeout%time.Second != 0 {
		errs = append(errs, fmt.Errorf("timeout %v: want whole seconds, 1 or more", c.Timeout))
	}
	if c.PollInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("poll interval %v: want 1ms or more", c.PollInterval))
	}
	return errors.Join(errs...)
}

// redisOptions reads the URL. The parser's own errors are dropped, because they
// quote what they could not read, which may be the password.
func (c Config) redisOptions() (*redis.Options, error) {
	opt, err := redis.ParseURL(c.URL.Reveal())
	if err != nil {
		return nil, errors.New("the Redis URL is not of the form redis://user:password@host:port/database")
	}
	opt.ContextTimeoutEnabled = true // otherwise a hung Redis outlasts the caller's deadline
	return opt, nil
}
