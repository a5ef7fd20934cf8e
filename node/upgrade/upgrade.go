// Package upgrade replaces the daemon's program on a machine by another version of it: what was downloaded is the one
// that was meant, as its sum says, and tests itself before it takes the place of the old one; and the old one
// comes back where the control plane does not hear the new one in time. Whoever is interrupted leaves one of
// the two, whole.
package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/statefile"
)

const (
	// Previous is what is added to the name of the program that was replaced.
	Previous = ".previous"
	// Sums is what is added to the name of a file with the sums of both, a line for each: what brings the program to
	// machines that the control plane makes takes them for its own.
	Sums = ".sums"
	// Unwelcomed is what is added to the name of a file that is there while the control plane has not heard the program.
	Unwelcomed = ".unwelcomed"
	// locked is what is added to the name of the file that an upgrade locks. It stays, as another one may wait for it.
	locked = ".lock"
)

const (
	// Within is how long the control plane may take to hear the new daemon, or the old one again.
	Within = 2 * time.Minute
	// testWithin is how long a program may test itself.
	testWithin = time.Minute
)

// Config says what is replaced by what.
type Config struct {
	Program string // the file
	URL     string // where the new one is; it may be a secret
	SHA256  string // its sum, in hexadecimal digits
	HTTP    interface {
		Do(r *http.Request) (*http.Response, error)
	}
	SelfTest []string // the arguments with which the new one tests itself
	// Restart has the daemon that runs end, and one begin with the program that is there then.
	Restart func(ctx context.Context) error
	// Welcomed returns the daemon that the control plane has heard last; the zero value: none.
	Welcomed func() (Daemon, error)
	// Now returns what a daemon would be that began now.
	Now func() (Daemon, error)
	// Within is how long the control plane may take to hear the new daemon, WithinAgain the old one after it; 0: Within.
	Within, WithinAgain time.Duration
	Every               time.Duration // how often Welcomed is asked; 0: each second
	Say                 func(text string)
}

// RolledBackError says that the new program was tried and given up.
type RolledBackError struct {
	Cause error
	Again error // why the daemon before is not back; nil: the control plane has heard it
}

// Error says what failed.
func (e *RolledBackError) Error() string {
	switch {
	case e.Again == nil:
		return e.Cause.Error() + "; the daemon before is back"
	case e.Again.Error() == e.Cause.Error():
		return e.Cause.Error() + "; and the daemon before is not back, for the same reason"
	}
	return e.Cause.Error() + "; and the daemon before is not back: " + e.Again.Error()
}

// Unwrap returns why the new program was given up.
func (e *RolledBackError) Unwrap() error { return e.Cause }

// Stage is as far as an upgrade came whose program was not tried.
type Stage string

// The stages at which a program is given up before it is tried.
const (
	Download Stage = "download" // it cannot be had
	Sum      Stage = "sum"      // it is not the one that was meant
	SelfTest Stage = "self_test"
)

// NotTriedError says that the new program was not tried, and nothing was changed.
type NotTriedError struct {
	Stage Stage
	Cause error
}

// Error says what failed.
func (e *NotTriedError) Error() string { return e.Cause.Error() }

// Unwrap returns why it was not tried.
func (e *NotTriedError) Unwrap() error { return e.Cause }

// Run replaces the program, unless it is the one that is asked for. A *RolledBackError says that the new one was tried;
// any other error, that it was not.
func Run(ctx context.Context, cfg Config) error {
	if _, err := os.Stat(cfg.Program); err != nil {
		return fmt.Errorf("there is nothing to upgrade: %w", err)
	}
	lock, err := lockProgram(cfg.Program)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if there, err := cfg.isThere(); err != nil || there {
		return err
	}
	next, err := fetch(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next) }() // unless it has its place
	cfg.Say("its sum is right: it tests itself")
	if err := test(ctx, next, cfg.SelfTest); err != nil {
		return &NotTriedError{SelfTest, err}
	}
	if err := cfg.replace(next); err != nil {
		return err
	}
	cfg.Say("it is in its place: starting it")
	err = statefile.SyncFolder(filepath.Dir(cfg.Program))
	if err == nil {
		err = cfg.start(ctx, cfg.Within, "the new one")
	}
	if err != nil {
		return cfg.rollBack(ctx, err)
	}
	endTrial(cfg.Program)
	cfg.Say("the control plane has heard the new daemon")
	return nil
}

// isThere reports, and says, whether the program in its place is the one that is asked for, and is not on trial.
func (cfg Config) isThere() (bool, error) {
	sum, err := sumOf(cfg.Program)
	if err != nil {
		return false, fmt.Errorf("reading the program: %w", err)
	}
	if !strings.EqualFold(sum, cfg.SHA256) {
		return false, nil
	}
	welcomed, err := cfg.Welcomed()
	if err != nil {
		return false, fmt.Errorf("asking which daemon was heard last: %w", err)
	}
	t, err := trialOf(cfg.Program, sum, welcomed)
	if err != nil || len(t.Sums) > 0 {
		return false, err
	}
	cfg.Say("the program is this version already: nothing is changed")
	return true, nil
}

// start has a daemon begin with the program that is there, and returns once the control plane has heard it.
func (cfg Config) start(ctx context.Context, within time.Duration, which string) error {
	from, err := cfg.look()
	if err == nil {
		err = cfg.Restart(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	return cfg.awaitWelcome(ctx, from, cmp.Or(within, Within), which)
}

var errInterrupted = errors.New("the upgrade was interrupted")

// awaitWelcome returns once the control plane has heard a daemon that has begun since a moment.
func (cfg Config) awaitWelcome(ctx context.Context, from moment, within time.Duration, which string) error {
	over := time.NewTimer(within)
	defer over.Stop()
	tick := time.NewTicker(cmp.Or(cfg.Every, time.Second))
	defer tick.Stop()
	for late := false; ; {
		if now, err := cfg.Welcomed(); err == nil && from.isBefore(now) {
			return nil
		}
		if late {
			return fmt.Errorf("the control plane did not hear %s within %s", which, within)
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-over.C:
			late = true // it may have been heard since the last question
		case <-tick.C:
		}
	}
}

// rollBack puts the old program in its place again, also where whoever asked for the upgrade does not wait any more.
func (cfg Config) rollBack(ctx context.Context, cause error) error {
	return &RolledBackError{Cause: cause, Again: cfg.goBack(context.WithoutCancel(ctx))}
}

// goBack puts the old program in its place again, and returns once the control plane has heard its daemon.
func (cfg Config) goBack(ctx context.Context) error {
	cfg.Say("it is given up, and the old one comes back")
	err := os.Rename(cfg.Program+Previous, cfg.Program)
	if err == nil {
		endTrial(cfg.Program)
		err = statefile.SyncFolder(filepath.Dir(cfg.Program))
	}
	return errors.Join(err, cfg.start(ctx, cfg.WithinAgain, "it"))
}
