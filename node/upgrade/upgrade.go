// Package upgrade replaces the daemon's program on a machine by another version of it: what was downloaded is the one
// that was meant, as its sum says, and tests itself before it takes the place of the old one; and the old one
// comes back where the control plane does not hear the new one in time. Whoever is interrupted leaves one of
// the two, whole.
package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
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
)

const (
	// Within is how long the control plane may take to hear the new daemon.
	Within = 2 * time.Minute
	// testWithin is how long a program may test itself.
	testWithin = time.Minute
)

// Config says what is replaced by what.
type Config struct {
	Program string // the file
	URL     string // where the new one is
	SHA256  string // its sum, in hexadecimal digits
	HTTP    interface {
		Do(r *http.Request) (*http.Response, error)
	}
	SelfTest []string // the arguments with which the new one tests itself
	// Restart has the daemon that runs end, and one begin with the program that is there then.
	Restart func(ctx context.Context) error
	// Welcomed names the daemon that the control plane has heard last; it is another name for each.
	Welcomed func() (name string, err error)
	Within   time.Duration // 0: Within
	Every    time.Duration // how often Welcomed is asked; 0: each second
	Say      func(text string)
}

// RolledBackError says that the old program is back.
type RolledBackError struct {
	Cause error
	Again error // why no daemon runs with it; nil: one does
}

// Error says what failed.
func (e *RolledBackError) Error() string {
	text := "the daemon before is back: " + e.Cause.Error()
	if e.Again != nil {
		text += "; and it does not run: " + e.Again.Error()
	}
	return text
}

// Unwrap returns why the new program was given up.
func (e *RolledBackError) Unwrap() error { return e.Cause }

// Run replaces the program. A *RolledBackError says that the new one was tried; any other error, that it was not.
func Run(ctx context.Context, cfg Config) error {
	next, err := fetch(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next) }() // unless it has its place
	cfg.Say("its sum is right: it tests itself")
	if err := test(ctx, next, cfg.SelfTest); err != nil {
		return err
	}
	before, err := cfg.Welcomed()
	if err != nil {
		return fmt.Errorf("asking which daemon was heard last: %w", err)
	}
	if err := replace(cfg.Program, next, cfg.SHA256); err != nil {
		return err
	}
	cfg.Say("it is in its place, and is started")
	err = cfg.Restart(ctx)
	if err == nil {
		err = cfg.awaitWelcome(ctx, before)
	}
	if err == nil {
		return nil
	}
	return cfg.rollBack(ctx, err)
}

// fetch downloads the new program beside the old one, and proves that it is the one that was meant.
func fetch(ctx context.Context, cfg Config) (path string, err error) {
	if _, err := os.Stat(cfg.Program); err != nil {
		return "", fmt.Errorf("there is nothing to upgrade: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.URL, nil)
	if err != nil {
		return "", fmt.Errorf("downloading the new program: %w", err)
	}
	answer, err := cfg.HTTP.Do(request)
	if err != nil {
		return "", fmt.Errorf("downloading the new program: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("downloading the new program from %s: %s", cfg.URL, answer.Status)
	}
	file, err := os.CreateTemp(filepath.Dir(cfg.Program), "."+filepath.Base(cfg.Program)+"-")
	if err != nil {
		return "", fmt.Errorf("making a place for the new program: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), answer.Body)
	err = errors.Join(err, file.Chmod(0o755), file.Sync(), file.Close()) //nolint:gosec // anyone may start it
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && !strings.EqualFold(got, cfg.SHA256) {
		err = fmt.Errorf("its SHA-256 sum is %s, and not %s", got, cfg.SHA256)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("downloading the new program: %w", err)
	}
	return file.Name(), nil
}

// test has a program test itself.
func test(ctx context.Context, program string, arguments []string) error {
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput() //nolint:gosec // its sum is known
	if err != nil {
		return fmt.Errorf("the new program does not pass its own test, and the old one stays: %w: %.600s", err,
			strings.TrimSpace(string(said)))
	}
	return nil
}

// replace puts a program in the place of another, which is kept. There is one of them at each moment.
func replace(program, next, sum string) error {
	previous := program + Previous
	old, err := sumOf(program)
	if err != nil {
		return fmt.Errorf("reading the old program: %w", err)
	}
	if err := statefile.Replace(program+Sums, []byte(strings.ToLower(sum)+"\n"+old+"\n")); err != nil {
		return fmt.Errorf("writing down the sums of both programs: %w", err)
	}
	if err := os.Remove(previous); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeping the old program: %w", err)
	}
	if err := os.Link(program, previous); err != nil {
		return fmt.Errorf("keeping the old program: %w", err)
	}
	if err := os.Rename(next, program); err != nil {
		return fmt.Errorf("putting the new program in its place: %w", err)
	}
	return syncFolder(filepath.Dir(program))
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the daemon's program
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

func syncFolder(path string) error {
	dir, err := os.Open(path) //nolint:gosec // where the program is
	if err != nil {
		return fmt.Errorf("writing the folder of the program: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("writing the folder of the program: %w", err)
	}
	return nil
}

// awaitWelcome returns once the control plane has heard another daemon than before.
func (cfg Config) awaitWelcome(ctx context.Context, before string) error {
	within, every := cfg.Within, cfg.Every
	if within == 0 {
		within = Within
	}
	if every == 0 {
		every = time.Second
	}
	over := time.NewTimer(within)
	defer over.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if now, err := cfg.Welcomed(); err == nil && now != before {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return fmt.Errorf("the control plane did not hear the new one within %s", within)
		case <-tick.C:
		}
	}
}

// rollBack puts the old program in its place again, also where whoever asked for the upgrade does not wait any more.
func (cfg Config) rollBack(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	back := os.Rename(cfg.Program+Previous, cfg.Program)
	if back == nil {
		back = syncFolder(filepath.Dir(cfg.Program))
	}
	return &RolledBackError{Cause: cause, Again: errors.Join(back, cfg.Restart(ctx))}
}
